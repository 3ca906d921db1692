/** Names that no contract can have: those of the three tools that find the others. */
export const finderNames: readonly string[] = ["call_tool", "describe_tool", "find_tools"]

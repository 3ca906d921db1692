export const nothing = (): null => null

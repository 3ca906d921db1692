/**
 * Every limit on manifest input, once. Owner: whoever reads untrusted manifests. At each limit the manifest is
 * refused with a diagnostic that names the limit; nothing is cut short silently.
 */
export const limits = Object.freeze({
  /** whole file, body included; checked before decoding */
  fileBytes: 1024 * 1024,
  /** a driver's module with the files of its folder that it names */
  moduleFiles: 256,
  moduleBytes: 8 * 1024 * 1024,
  /** text between the two `---` lines; the YAML parser is quadratic in places, so this is what bounds its time */
  frontmatterBytes: 64 * 1024,
  yamlNodes: 10_000,
  yamlDepth: 40,

  /** a foreign JSON Schema (`inputs`, `outputs`, `contextSchema`) */
  schemaBytes: 64 * 1024,
  schemaDepth: 32,
  schemaNodes: 2_000,
  schemaProperties: 500,
  schemaEnum: 1_000,
  schemaRefs: 500,
  /** instances: nodes and depth of one value, then steps of one validation (visits of subschemas) */
  valueNodes: 500_000,
  valueDepth: 256,
  validationSteps: 2_000_000,
  /** values with more nodes get their first fault told alone; and so many faults of one value are told at most */
  allFaultNodes: 5_000,
  allFaults: 50,
  /** strings longer than this never match a `format` */
  formatLength: 8_192,

  /** untrusted regular expressions: source length, compiled size, and size × subject length of one validation */
  patternLength: 1_000,
  patternProgram: 5_000,
  /** compiled size of all patterns of one schema */
  patternTotal: 50_000,
  patternWork: 50_000_000,

  /** how long a call waits for a person to answer what a tool asks, where the tool does not say */
  humanWaitMs: 10 * 60_000,

  versionLength: 128,
  rangeLength: 256,
  /** how much of a program's output is searched for its version */
  versionOutput: 16 * 1024,
  /** a version check that names no `timeout_ms`, so that a slow or busy machine does not make a program vanish; a longer one is cut to it, with a warning */
  versionCheckMs: 30_000,

  /** how long what a driver declares may take; a longer time is cut to these, with a warning */
  healthCheckMs: 60_000,
  setupStepMs: 60 * 60_000,
  /** commands that only look: `skip_if`, and the one that lists a prompt's options */
  setupProbeMs: 60_000,
  /** a person's way through a page and back */
  callbackMs: 60 * 60_000,
  /** how often at most; a shorter time is raised to these, with a warning */
  healthEveryMs: 10_000,
  refreshEveryMs: 60_000,
  /** what an MCP server may take to answer */
  serverWaitMs: 10 * 60_000,

  /** one template, and how deep a tree of them goes */
  templateLength: 8_192,
  templateDepth: 32,
  /** what of a result is taken: length and steps of `response_extract` and the like */
  extractLength: 512,
  extractSteps: 32,

  /** sources of one bundle, those of the CODE.md files that it names counted; and how far those lead on */
  codeSources: 64,
  codeDepth: 5,

  /** what of an Amplifier tool's output is kept where neither driver nor operator says; the rest is left out, with a note */
  amplifierOutputChars: 50_000,

  egressEntries: 256,
  egressEntryLength: 300,
  listLength: 512,

  /** the walk that finds manifests */
  walkDepth: 16,
  walkEntries: 50_000,
  walkManifests: 2_000,
  /** bytes of manifests held at once; what comes after is read when its turn comes */
  walkHeldBytes: 16 * 1024 * 1024,
  commandDepth: 8,
  commandCount: 256,
})

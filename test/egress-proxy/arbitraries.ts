/** Inputs for property tests: host-like text with all the spellings that parsers disagree on, and arbitrary bytes. */
import fc from "fast-check"

/** Runs of one property; a long mode sets it to millions. */
export const runs = Number(process.env.CAISSON_FUZZ_RUNS ?? 2_000)
export const seeded = { numRuns: runs, seed: Number(process.env.CAISSON_FUZZ_SEED ?? 20_261_116) }

const labels = [
  "api",
  "good",
  "test",
  "cdn",
  "xn--80ak6aa92e",
  "xn--",
  "_x",
  "a-b",
  "-a",
  "a-",
  "0",
  "1",
  "127",
  "0x7f",
  "0X7F",
  "0177",
  "256",
  "2130706433",
  "0x",
  "1e3",
  "",
  "A",
  "%61",
  "%00",
  "localhost",
  "internal",
]
const odd = [
  "@",
  ":",
  "/",
  "\\",
  "?",
  "#",
  "[",
  "]",
  "%",
  "\0",
  " ",
  "\t",
  "\r",
  "\n",
  "\u00e4",
  "\u3002",
  "\uff0e",
  "\u2488",
  "\u212a",
  "*",
  ",",
  ";",
  "'",
  '"',
  "&",
  "=",
  "+",
  "~",
  "!",
  "$",
  "(",
  ")",
  "<",
  ">",
  "|",
  "^",
  "`",
  "{",
  "}",
]

export const hostLike: fc.Arbitrary<string> = fc.oneof(
  fc.array(fc.constantFrom(...labels), { minLength: 1, maxLength: 5 }).map((parts) => parts.join(".")),
  fc
    .array(fc.oneof(fc.constantFrom(...labels), fc.constantFrom(...odd), fc.constant(".")), {
      minLength: 1,
      maxLength: 8,
    })
    .map((parts) => parts.join("")),
  fc.ipV4(),
  fc.ipV4Extended(),
  fc.ipV6().map((text) => `[${text}]`),
  fc.domain(),
  fc.string({ unit: "binary-ascii", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 20 }),
)

export const latinBytes = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))

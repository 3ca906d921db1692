/** The corpus against the pure core: parse, judge, decide, vet, without a socket. */
import { describe, expect, it } from "vitest"
import { egressCases, elsewhere } from "../corpus/egress-cases.ts"
import { judgePure } from "../corpus/egress-runner.ts"

describe("the egress corpus, judged without I/O", () => {
  for (const one of egressCases.filter((entry) => entry.wireOnly !== true)) {
    it(`row ${one.row}: ${one.name} → ${one.reason}`, () => {
      expect(judgePure(one)).toBe(one.reason)
    })
  }
})

describe("the rows of the table", () => {
  const listed = [
    1, 2, 3, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 37,
    38, 39, 40, 41, 43, 45, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 59, 60, 61, 62, 63, 65, 66, 67, 68, 69, 71, 73, 75,
    76, 77, 78, 79, 80, 81, 83, 84, 86, 87, 88, 90, 92, 93, 94, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108,
    109, 110, 111, 112, 113, 114,
  ]
  for (const row of listed) {
    it(`row ${row} is a case here, or says where it is shown`, () => {
      expect(egressCases.some((one) => one.row === row) || elsewhere[row] !== undefined).toBe(true)
    })
  }
})

/**
 * An address as a QR code for a terminal, so that a telephone can open it.
 *
 * Guarantees: pure. Dark on light whatever the terminal's own colours are, with the quiet border that readers need; only
 * where the terminal has colours and more than ASCII, and is wide enough to hold it unbroken. Nothing is shown that is not
 * in the address, which stands beside it to be read.
 */
import { encode } from "uqr"
import type { Colors } from "../terminal.ts"

/** Longer ones fill a screen, and no telephone reads them off it. */
const LONGEST = 200
const BORDER = 2
/** Two rows of modules in one line. */
const HALVES = [" ", "▄", "▀", "█"] as const

interface QrPlace {
  readonly paint: Pick<Colors, "isColorSupported" | "black" | "bgWhiteBright">
  readonly columns: number
  /** the terminal shows more than ASCII */
  readonly wide: boolean
}

/** Undefined: there is no place for it. */
export const qrLines = (address: string, { paint, columns, wide }: QrPlace): readonly string[] | undefined => {
  if (!paint.isColorSupported || !wide || Buffer.byteLength(address) > LONGEST) return undefined
  const { data, size } = encode(address, { ecc: "L", border: BORDER })
  if (size > columns) return undefined
  const isDark = (row: number, column: number): boolean => data[row]?.[column] === true
  return Array.from({ length: Math.ceil(size / 2) }, (_, line) => {
    const halves = Array.from({ length: size }, (_column, column) => {
      const [upper, lower] = [isDark(2 * line, column), isDark(2 * line + 1, column)]
      return HALVES[(upper ? 2 : 0) + (lower ? 1 : 0)] ?? " "
    })
    return paint.bgWhiteBright(paint.black(halves.join("")))
  })
}

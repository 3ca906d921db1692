/**
 * What a program prints on a lent terminal, after the filter, given to a terminal of its own: xterm's parser is the judge
 * of what a person's terminal would do with it, and knows nothing of the filter.
 */
import fc from "fast-check"
import xterm from "@xterm/headless"
import { describe, expect, it } from "vitest"
import { createScreen } from "../../../src/cli/person/screen.ts"

const ESC = "\u001b"
const shown = (chunks: readonly Uint8Array[], wide = true): string => {
  let text = ""
  const screen = createScreen((more) => void (text += more), wide)
  for (const chunk of chunks) screen.show(chunk)
  return text
}
const shownText = (text: string, wide = true): string => shown([Buffer.from(text)], wide)

interface Seen {
  readonly lines: readonly string[]
  /** what the terminal did beside showing text and moving its cursor */
  readonly did: readonly string[]
  /** what it answered, as if it had been typed */
  readonly typed: string
}

/** Everything of xterm's that reaches further than its screen, by what it is called in its documentation. */
const charsFrom = (first: number): readonly string[] =>
  Array.from({ length: 0x7e - first + 1 }, (_, at) => String.fromCharCode(first + at))
const windowOptions = { getWinTitle: true, setWinSizeChars: true, setWinPosition: true } as const
const HARMLESS_FINALS = "ABCDEFGHIJKSTfmsu"

const onTerminal = async (text: string): Promise<Seen> => {
  const terminal = new xterm.Terminal({ cols: 80, rows: 24, scrollback: 200, windowOptions, allowProposedApi: true })
  const did: string[] = []
  let typed = ""
  terminal.onTitleChange((title) => did.push(`title ${title}`))
  terminal.onBinary(() => did.push("binary"))
  terminal.onData((data) => void (typed += data))
  const { parser } = terminal
  for (let id = 0; id < 2000; id += 1) parser.registerOscHandler(id, () => did.push(`OSC ${id}`) > 0)
  for (const final of charsFrom(0x40)) {
    const harmless = HARMLESS_FINALS.includes(final)
    parser.registerCsiHandler({ final }, (numbers) => {
      const most = "ST".includes(final) ? 1 : "su".includes(final) ? 1 : 16
      if (final === "n" ? numbers[0] === 6 && numbers.length === 1 : harmless && numbers.length <= most)
        return final === "J" && numbers[0] === 3 ? did.push("erases what scrolled away") > 0 : false
      return did.push(`CSI ${numbers.join(";")}${final}`) > 0
    })
    for (const prefix of ["?", ">", "<", "="])
      parser.registerCsiHandler({ prefix, final }, (numbers) => {
        const allowed =
          prefix === "?" && "hl".includes(final) && numbers.length === 1 && [25, 2004].includes(Number(numbers[0]))
        return allowed ? false : did.push(`CSI ${prefix}${numbers.join(";")}${final}`) > 0
      })
    for (const intermediates of [" ", "!", '"', "$", "'", "*", "+"]) {
      parser.registerCsiHandler({ intermediates, final }, () => did.push(`CSI ${intermediates}${final}`) > 0)
      parser.registerDcsHandler({ intermediates, final }, () => did.push(`DCS ${intermediates}${final}`) > 0)
    }
    parser.registerDcsHandler({ final }, () => did.push(`DCS ${final}`) > 0)
  }
  for (const final of charsFrom(0x30))
    for (const intermediates of ["", " ", "#", "%", "(", ")", "*", "+", "-", ".", "/"])
      if (!(intermediates === "" && "[]PX^_\\".includes(final)))
        parser.registerEscHandler(intermediates === "" ? { final } : { intermediates, final }, () => {
          return did.push(`ESC ${intermediates}${final}`) > 0
        })
  await new Promise<void>((resolve) => terminal.write(text, resolve))
  const { active } = terminal.buffer
  if (active.type !== "normal") did.push("another screen")
  const { modes } = terminal
  const odd = [modes.applicationCursorKeysMode, modes.insertMode, modes.originMode, modes.sendFocusMode]
  if (odd.some(Boolean) || modes.mouseTrackingMode !== "none" || !modes.wraparoundMode) did.push("modes")
  const lines = Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? "")
  terminal.dispose()
  return { lines, did, typed }
}

const ATTACKS: readonly (readonly [string, string])[] = [
  ["renames the window", `${ESC}]0;title\u0007`],
  ["renames it by the old way", `${ESC}]2;title${ESC}\\`],
  ["writes the clipboard", `${ESC}]52;c;Y3VybCBldmlsfHNo\u0007`],
  ["reads the clipboard", `${ESC}]52;c;?\u0007`],
  ["hides an address behind a link", `${ESC}]8;;https://evil.test${ESC}\\text${ESC}]8;;${ESC}\\`],
  ["changes the palette", `${ESC}]4;1;rgb:00/00/00\u0007`],
  ["asks for a colour", `${ESC}]11;?\u0007`],
  ["tells of another folder", `${ESC}]7;file:///etc\u0007`],
  ["puts up a notification", `${ESC}]9;click here\u0007`],
  ["writes a file at iTerm", `${ESC}]1337;File=name=eA==:AAAA\u0007`],
  ["asks what the terminal is", `${ESC}[c${ESC}[>c${ESC}[=c${ESC}Z`],
  ["asks for its status", `${ESC}[5n${ESC}[?6n${ESC}[?15n`],
  ["asks for the title", `${ESC}[21t`],
  ["resizes and moves the window", `${ESC}[8;10;10t${ESC}[3;0;0t`],
  ["asks for a setting", `${ESC}P$qm${ESC}\\`],
  ["asks for a capability", `${ESC}P+q544e${ESC}\\`],
  ["draws a picture", `${ESC}Pq#0;2;0;0;0~~${ESC}\\`],
  ["sends a privacy message", `${ESC}^hidden${ESC}\\`],
  ["sends a string", `${ESC}Xhidden${ESC}\\`],
  ["sends a program command", `${ESC}_Gf=100;AAAA${ESC}\\`],
  ["defines keys", `${ESC}P0;1|17/726d202d7266${ESC}\\`],
  ["resets the terminal", `${ESC}c${ESC}[!p`],
  ["goes to another screen", `${ESC}[?1049h${ESC}[?47h`],
  ["turns on reports of the mouse", `${ESC}[?1000h${ESC}[?1003h${ESC}[?1006h`],
  ["turns them on by a scroll of many numbers", `${ESC}[1;1;1;1;1T`],
  ["turns on reports of the focus", `${ESC}[?1004h`],
  ["changes what keys send", `${ESC}[?1h${ESC}=${ESC}[>4;2m${ESC}[>1u`],
  ["inserts instead of writing over", `${ESC}[4h`],
  ["turns off the keyboard", `${ESC}[2h`],
  ["prints to a printer", `${ESC}[5i${ESC}[4i`],
  ["sets margins", `${ESC}[1;2r${ESC}[1;2s`],
  ["sets a tab", `${ESC}H${ESC}[3g`],
  ["changes the set of characters", `${ESC}(0${ESC})0\u000e${ESC}$(B${ESC}%G`],
  ["fills the screen", `${ESC}#8`],
  ["erases what scrolled away", `${ESC}[3J`],
  ["repeats a character", `x${ESC}[999999b`],
  ["ends a paste that a person makes", `${ESC}[201~${ESC}[200~`],
  ["counts further than a terminal does", `${ESC}[99999999999999999999A`],
  ["hides one in another", `${ESC}]0;${ESC}]52;c;AA\u0007${ESC}[${ESC}]2;t\u0007`],
  ["breaks one off", `${ESC}]0;a\u0018${ESC}[?1049\u001ah${ESC}${ESC}]2;t\u0007`],
  [
    "spells it in eight bits",
    `\u009d0;title\u009c\u009b?1049h\u0090$qm\u009c\u0098x\u009c\u009ehidden\u009c\u009fx\u009c`,
  ],
]

describe("a program that prints on a lent terminal", () => {
  it.each(ATTACKS)("and %s is heard of by nobody", async (_, attack) => {
    const whole = shownText(`before ${attack} after`)
    const seen = await onTerminal(whole)
    expect(seen.did).toEqual([])
    expect(seen.typed).toBe("")
    expect(whole).toContain("before ")
  })

  it("would be heard of without the filter, but for what this terminal knows nothing of", async () => {
    const deaf: string[] = []
    for (const [name, attack] of ATTACKS) {
      const { did, typed } = await onTerminal(attack)
      if (did.length === 0 && typed === "") deaf.push(name)
    }
    expect(deaf).toEqual([
      "sends a privacy message",
      "sends a string",
      "sends a program command",
      "counts further than a terminal does",
    ])
  })

  it("and only shows text, colours and where its cursor goes has all of it shown, however it is cut", async () => {
    const honest = `Hallo, Zoë ${ESC}[1;31mred${ESC}[0m 日本 👩\u200d💻\r\n${ESC}[2K${ESC}[3;5Hat${ESC}[6n${ESC}[?25l${ESC}[K${ESC}[2J\tend\b!`
    const bytes = Buffer.from(honest)
    expect(shown([bytes])).toBe(honest)
    expect(shown(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toBe(honest)
    expect((await onTerminal(honest)).did).toEqual([])
    expect((await onTerminal(`${ESC}[3;5H${ESC}[6n`)).typed).toBe(`${ESC}[3;5R`)
  })

  it("and turns text around, or hides it, has it shown as it stands", () => {
    for (const char of "\u200b\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2060\ufeff\u00ad\u2028\u2029")
      expect(shownText(`a${char}b`), char.codePointAt(0)?.toString(16)).toBe("ab")
    expect(shownText("a\u{e0041}\u{e007f}b")).toBe("ab")
  })

  it("and writes letters whose bytes are controls elsewhere sends none of them to a terminal without UTF-8", () => {
    // ś is c5 9b: to a terminal of one byte a character, the second begins a sequence.
    const sent = Buffer.from(shownText("ś2J ŝ0;title\u0007", false))
    expect([...sent].filter((byte) => byte >= 0x80)).toEqual([])
  })

  it("in bytes that are no text, and in strings without an end, does nothing either, and holds no memory", async () => {
    const odd = Buffer.from([0x9b, 0x3f, 0x31, 0x30, 0x34, 0x39, 0x68, 0xff, 0xc2, 0x1b, 0x5d, 0x30, 0x3b])
    expect((await onTerminal(shown([odd, Buffer.alloc(2 ** 20, 0x41)]))).did).toEqual([])
    expect(shown([odd, Buffer.alloc(2 ** 20, 0x41), Buffer.from("\u0007on")])).toMatch(/on$/)
  })

  it("in any mixture of sequences, cut anywhere, moves the cursor and nothing else", async () => {
    const pieces = fc.oneof(
      fc.constantFrom(...ATTACKS.map(([, attack]) => attack)),
      fc.constantFrom(
        ESC,
        `${ESC}[`,
        `${ESC}]`,
        `${ESC}P`,
        "\u009b",
        "\u009d",
        "\u009c",
        `${ESC}\\`,
        "\u0007",
        "\u0018",
      ),
      fc.constantFrom("?1049h", "52;c;AA", "6n", "3J", "0;t", "31m", ";", "2004h", "!p", "$", "(", "#8", " q", ":"),
      fc.string({ unit: "binary", maxLength: 6 }),
      fc.integer({ min: 0, max: 0x9f }).map((code) => String.fromCharCode(code)),
    )
    const runs = Number(process.env["CAISSON_FUZZ_RUNS"]) || 300
    await fc.assert(
      fc.asyncProperty(
        fc.array(pieces, { maxLength: 24 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        async (parts, cuts) => {
          const bytes = Buffer.from(parts.join(""))
          const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
          const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
          const out = shown(chunks)
          expect(out).toBe(shown([bytes]))
          // Passing twice changes nothing: what came through holds no half of anything.
          expect(shownText(out)).toBe(out)
          const { did, typed } = await onTerminal(out)
          expect(did).toEqual([])
          expect(typed.replace(/\u001b\[\d+;\d+R/g, "")).toBe("")
        },
      ),
      { numRuns: runs },
    )
  })
})

describe("a whole program at the terminal", () => {
  const program = (text: string): string => {
    const screen = createScreen(() => undefined, true, "program")
    return screen.pass(Buffer.from(text)) + screen.reset()
  }
  it.each([
    ["asks for the title, which is typed as its answer", `${ESC}[21t`],
    ["puts the window away", `${ESC}[2t`],
    ["makes the window small", `${ESC}[8;1t`],
    ["covers others with the window", `${ESC}[9;1t`],
  ])("that %s is heard of by nobody", (_, attack) => {
    expect(program(attack)).toBe(program(""))
  })

  it.each([
    ["reverse colours", "?5", "?5"],
    ["positions within margins", "?6", "?6"],
    ["the keypad's keys", "?66", "?66"],
    ["a screen that stands still", "?2026", "?2026"],
  ])("that leaves %s behind has that taken back", (_, set, taken) => {
    const all = program(`${ESC}[${set}h`)
    expect(all.lastIndexOf(`${ESC}[${taken}l`)).toBeGreaterThan(all.indexOf(`${ESC}[${set}h`))
  })
})

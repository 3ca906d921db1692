/**
 * One page about a driver, for who has to say yes to it: what it asks for, what it did, what is risky, what changed.
 *
 * Guarantees: pure. As HTML it is one file without scripts, links or requests, and every text in it is escaped, whoever
 * wrote it; what steers a terminal or changes the direction of text is spelt out in both forms.
 */
export interface PageRow {
  readonly text: string
  /** why it wants a second look */
  readonly risk?: string
}
interface PageSection {
  readonly title: string
  readonly rows: readonly PageRow[]
  /** said where there are no rows */
  readonly none: string
}
export interface ReviewPage {
  readonly title: string
  readonly about: string
  readonly sections: readonly PageSection[]
}

/** Each text once, with how often it came, the most frequent last to be left out; what there is no room for is counted. */
export const countedRows = (texts: readonly string[], most: number): readonly PageRow[] => {
  const groups = [...Map.groupBy(texts, (text) => text)].toSorted(([, one], [, other]) => other.length - one.length)
  const rows = groups
    .slice(0, most)
    .map(([text, all]) => ({ text: all.length === 1 ? text : `${text}, ${all.length} times` }))
  const left = groups.length - rows.length
  return left === 0
    ? rows
    : [...rows, { text: `and ${left} more`, risk: "look at its receipts: there is no room for all of it" }]
}

const spelt = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}
const escaped = (text: string): string => spelt(text).replace(/[&<>"']/g, (char) => ENTITIES[char] ?? "")

export const pageLines = ({ title, about, sections }: ReviewPage): readonly string[] => [
  spelt(title),
  spelt(about),
  ...sections.flatMap(({ title: heading, rows, none }) => [
    "",
    spelt(heading),
    ...(rows.length === 0 ? [`  ${spelt(none)}`] : []),
    ...rows.map(
      ({ text, risk }) =>
        `  ${risk === undefined ? "" : "! "}${spelt(text)}${risk === undefined ? "" : ` (${spelt(risk)})`}`,
    ),
  ]),
]

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}" +
  "li{overflow-wrap:anywhere}.risk{font-weight:bold;color:#8a1c00}code{font-size:.95em}"

export const pageHtml = ({ title, about, sections }: ReviewPage): string => {
  const row = ({ text, risk }: PageRow): string =>
    risk === undefined
      ? `<li><code>${escaped(text)}</code></li>`
      : `<li class="risk"><code>${escaped(text)}</code> ${escaped(risk)}</li>`
  const body = sections
    .map(
      ({ title: heading, rows, none }) =>
        `<section><h2>${escaped(heading)}</h2>${rows.length === 0 ? `<p>${escaped(none)}</p>` : `<ul>${rows.map(row).join("")}</ul>`}</section>`,
    )
    .join("\n")
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
<p>${escaped(about)}</p>
${body}
</main>
</body>
</html>
`
}

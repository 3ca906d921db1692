/** A person at Debian's Chromium, driven by playwright-core: opens a page, and fills in each form until none is left. */
import { type Browser, chromium } from "playwright-core"
import { ensurePrograms } from "./servers/packages.ts"

/** Why there is none, or undefined. */
export const ensureChromium = (): string | undefined => ensurePrograms({ chromium: "chromium" })

/** `mapped`: names that mean a port of this machine, without TLS and with; whose certificates it is does not matter. */
export const openChromium = (
  mapped: Readonly<Record<string, number>>,
  tls: Readonly<Record<string, number | undefined>> = {},
): Promise<Browser> =>
  chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--ignore-certificate-errors",
      `--host-resolver-rules=${[
        ...Object.entries(mapped).map(([name, port]) => `MAP ${name}:80 127.0.0.1:${port}`),
        ...Object.entries(tls).map(([name, port]) => `MAP ${name}:443 127.0.0.1:${port}`),
      ].join(", ")}`,
    ],
  })

/** Answers with where the browser ended, and what was there. */
export const signInAt = async (
  browser: Browser,
  url: string,
): Promise<{ readonly url: string; readonly text: string }> => {
  const context = await browser.newContext()
  try {
    const page = await context.newPage()
    await page.goto(url)
    for (let steps = 0; steps < 10 && (await page.locator("form").count()) > 0; steps++) {
      for (const name of ["login", "password"]) {
        const field = page.locator(`input[name="${name}"]`)
        if ((await field.count()) > 0) await field.fill("alice")
      }
      await Promise.all([page.waitForEvent("load"), page.locator('button[type="submit"]').first().click()])
    }
    return { url: page.url(), text: await page.locator("body").innerText() }
  } finally {
    await context.close()
  }
}

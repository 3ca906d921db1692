/** What a driver has run, or is given, beside its calls: how it is installed, set up, signed in and looked after. Pure. */
import type { AuthProvider, DriverContract, InstallMethod, SetupStep } from "../../manifest/types.ts"
import type { PageRow } from "./page.ts"

const installRow = (method: InstallMethod): PageRow => {
  if (!method.usable) return { text: `is not installed by ${method.method}: ${method.reason}` }
  switch (method.method) {
    case "vendored":
      return { text: `is installed with its own ${method.path}` }
    case "curl":
    case "download": {
      const { url, sha256 } = method
      const text = `is installed by ${method.method} from ${url}${sha256 === undefined ? "" : `, sha256:${sha256}`}`
      if (sha256 === undefined) return { text, risk: "whatever lies there that day: no hash is named" }
      return method.method === "curl" ? { text, risk: "a script from elsewhere is run" } : { text }
    }
    default:
      return { text: `is installed by ${method.method}, ${method.package}` }
  }
}

const commandsOf = (step: SetupStep): readonly string[] => [
  ...(step.skipIf === undefined ? [] : [step.skipIf.cmd]),
  ...(step.kind === "cmd" ? [step.cmd] : []),
  ...(step.kind === "prompt" && step.answer.type === "select" && step.answer.options.from === "cmd"
    ? [step.answer.options.cmd]
    : []),
  ...(step.kind !== "oauth" && step.persist?.to === "cmd" ? [step.persist.cmd] : []),
]

const setupRows = (step: SetupStep): readonly PageRow[] => [
  ...commandsOf(step).map((cmd) => ({ text: `set-up ${step.id} runs ${cmd}` })),
  ...(step.kind === "prompt"
    ? [
        {
          text: `set-up ${step.id} asks a person for ${step.answer.type === "secret" ? "a secret" : "an answer"}: ${step.prompt}`,
          ...(step.answer.type === "secret" ? { risk: "a secret" } : {}),
        },
      ]
    : []),
  ...(step.kind === "external" ? [{ text: `set-up ${step.id} sends a person to ${step.url}` }] : []),
  ...(step.kind === "oauth" ? [{ text: `set-up ${step.id} obtains the secret ${step.secretSlug}` }] : []),
]

const addressesOf = ({ issuer, endpoints }: AuthProvider): readonly string[] => {
  const { authorization, token, deviceAuthorization, revocation } = endpoints
  return [issuer, authorization, token, deviceAuthorization, revocation].filter((address) => address !== undefined)
}

const authRows = ({ auth }: DriverContract): readonly PageRow[] => {
  if (auth === undefined) return []
  const { state, login, refresh, provider } = auth
  const by = (what: string, cmd: string | undefined, url: string | undefined): readonly PageRow[] => [
    ...(cmd === undefined ? [] : [{ text: `${what} runs ${cmd}` }]),
    ...(url === undefined ? [] : [{ text: `${what} goes to ${url}` }]),
  ]
  return [
    ...state.env.map((name) => ({ text: `is given the secret ${name}`, risk: "a secret" })),
    ...state.paths.map((path) => ({ text: `keeps ${path} from call to call` })),
    ...by("its login", login?.cmd, login?.url),
    ...(login?.completesWhen ?? []).map((proof) => ({
      text: proof.by === "cmd" ? `its login is proven by ${proof.cmd}` : `its login is proven at ${proof.probe.url}`,
    })),
    ...(refresh === undefined
      ? []
      : refresh.via === "cmd"
        ? by("its refresh", refresh.cmd, undefined)
        : by("its refresh", undefined, refresh.url)),
    ...(provider === undefined
      ? []
      : [
          { text: `its tokens are for ${provider.apiBase}, for ${provider.scopes.join(" ") || "no scope"}` },
          ...addressesOf(provider).map((address) => ({ text: `its tokens come from ${address}` })),
        ]),
  ]
}

const limitRows = ({ limits, egressBudget, timeoutMs }: DriverContract): readonly PageRow[] =>
  Object.entries({ ...limits, ...egressBudget, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ({ text: `is limited to ${name} ${value}` }))

export const besideRows = (driver: DriverContract): readonly PageRow[] => {
  const { code, install, setup, healthCheck, versionCheck, tokenCapture, runner } = driver
  return [
    ...install.map(installRow),
    ...(versionCheck === undefined ? [] : [{ text: `its version is asked by ${versionCheck.cmd}` }]),
    ...setup.flatMap(setupRows),
    ...authRows(driver),
    ...(tokenCapture === undefined
      ? []
      : [
          ...tokenCapture.endpoints.map(({ host, port, path }) => ({
            text: `its tokens come from ${host}:${port}${path}`,
          })),
          ...tokenCapture.hosts.map((host) => ({ text: `its access tokens are meant for ${host}` })),
          ...(tokenCapture.idToken === "pass"
            ? [{ text: "its program reads its id token", risk: "a token reaches the sandbox" }]
            : []),
        ]),
    ...(healthCheck?.method === "exec" ? [{ text: `its health is asked by ${healthCheck.cmd}` }] : []),
    ...(healthCheck?.method === "http" ? [{ text: `its health is asked at ${healthCheck.probe.url}` }] : []),
    ...(runner?.form === "inline" && runner.image !== undefined ? [{ text: `runs in the image ${runner.image}` }] : []),
    ...(code === undefined
      ? []
      : [...(code.execute ?? []).map((key) => `execute ${key}`), ...code.adapters, ...code.transforms].map((name) => ({
          text: `brings the function ${name}`,
        }))),
    ...limitRows(driver),
  ]
}

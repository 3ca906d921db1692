/** Limits of logins: who owns each, its value, what happens at it. */
interface LoginLimit {
  readonly owner: string
  readonly value: number
  readonly at: string
}
const limit = (owner: string, value: number, at: string): LoginLimit => Object.freeze({ owner, value, at })

export const loginLimits = Object.freeze({
  pollMs: limit("a device's login", 1_000, "a provider is not asked more often, whatever it allows"),
  callbacks: limit("one login's callback", 64, "further requests are not answered"),
  callbackCloseMs: limit("one login's callback", 1_000, "a connection that is still open is cut"),
  callbackChars: limit("one login's callback", 16_384, "a longer address is refused"),
  callbackBytes: limit("a program's callback", 262_144, "a longer page of the program's is not shown; one of ours is"),
  callbackSteps: limit("a program's callback", 8, "further addresses that it names are not let through"),
  callbackReachMs: limit(
    "a program's callback",
    2_000,
    "nobody listens inside: the browser is told so, and may come again",
  ),
  callbackAnswerMs: limit("a program's callback", 60_000, "the program's answer is not waited for any longer"),
  callbackPastes: limit("a program's callback", 5, "after so many addresses that do not fit nobody is asked again"),
  loginMs: limit("a login", 900_000, "it is ended: auth_failed, and nobody is signed in"),
  turnMs: limit("a login", 900_000, "another one is under way for that long: auth_required"),
  briefTurnMs: limit("a headless login", 250, "another one is under way: auth_required at once"),
  proofMs: limit("a proof", 60_000, "it is ended, and proves nothing"),
  refreshMs: limit("a refresh", 60_000, "it is ended; nobody is signed out, and it is tried again after a while"),
  refreshTurnMs: limit("a refresh", 90_000, "another one is under way for that long: the call goes on as it is"),
  coolDownMs: limit("a refresh", 30_000, "one that came to nothing is not tried again before"),
  marginMs: limit("a refresh", 60_000, "tokens that end within it are refreshed before a call"),
  changes: limit("the store", 20, "a login that others keep changing is given up: internal"),
  accountChars: limit("a proof", 128, "a longer name is not taken for an account"),
  proofBodyBytes: limit("a proof", 65_536, "a longer answer proves what its status says, and tells no account"),
  failureChars: limit("the store", 600, "the rest of why a login failed is left out"),
  optionLines: limit("a set-up step", 200, "further choices are not offered"),
  answerChars: limit("a set-up step", 8_192, "a longer answer: setup_failed"),
  pages: limit("a program's login", 8, "further addresses that it prints are not offered to be opened"),
  pageChars: limit("a program's login", 2_048, "a longer address is not offered to be opened"),
})

/** Limits of what is captured at token endpoints: each with its value and what happens there. */
export const captureLimits = Object.freeze({
  /** bytes of a request to a token endpoint → `unsearchable_body` */
  requestBytes: 65_536,
  /** bytes of an answer, decoded → `token_answer` */
  answerBytes: 262_144,
  /** tokens in one answer, and characters of each → `token_answer` */
  tokens: 8,
  tokenChars: 16_384,
  /** characters of the shortest that is taken for one; a shorter one would be found in everything → `token_answer` */
  leastChars: 8,
  /** logins of one owner; the oldest is forgotten, and its placeholders stand for nothing any more */
  logins: 4,
  /** tokens that others took the place of, and are still taken out of what hosts send; older ones are not any more */
  replaced: 8,
  /** from the end of the request to the end of the answer → `upstream_timeout` */
  answerMs: 60_000,
  /** how long a proxy that is closed waits for an answer that is under way, so that what was rotated is kept */
  closeMs: 15_000,
  /** seconds of `expires_in`; a longer life is taken for this one */
  lifeSeconds: 315_360_000,
})

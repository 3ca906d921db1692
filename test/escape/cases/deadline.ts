/** Outliving the call. Programs end by themselves after some seconds, so that they stay harmless where the control is off. */
import { patience } from "../../support/patience.ts"
import type { EscapeCase } from "../escape-case.ts"

const late = (name: string, source: string, more: Partial<EscapeCase> = {}): EscapeCase => ({
  name,
  language: "python",
  source: `${source}\nend = time.time() + ${6 * patience}\nwhile time.time() < end: time.sleep(0.1)\nbreach("outlived the deadline")`,
  profile: { limits: { wallMs: Math.max(500, 250 * patience) } },
  endings: ["limit wall"],
  cutShort: true,
  ...more,
})

export const deadline: readonly EscapeCase[] = [
  late(
    "ignoring every signal does not outlast the deadline",
    `
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass`,
  ),
  late(
    "a daemon in a session of its own does not outlast the deadline",
    `
if os.fork(): os.wait()
else:
    os.setsid()
    if os.fork(): os._exit(0)`,
  ),
  late(
    "a parent that is stopped does not hold the deadline up",
    `
parent = os.getpid()
if os.fork() == 0:
    os.setsid(); os.kill(parent, signal.SIGSTOP)`,
  ),
  late(
    "a blocked signal mask and a ptrace-less sleep do not hold the deadline up",
    `
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
call("prctl", 1, 0, 0, 0, 0); call("prctl", 36, 1, 0, 0, 0); call("prctl", 15, b"kworker/0:0", 0, 0, 0)`,
  ),
  late("closing every stream does not end the watch", "os.closerange(0, 256)"),
  {
    name: "what orphans write after the program's end is in no output and in no workspace",
    language: "python",
    source: `
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    time.sleep(${patience}); os.write(1, b"BREACH: late words\\n"); put("/workspace/late", "x"); os._exit(0)
os.wait()`,
  },
  {
    name: "an orphan that keeps stdout open does not keep the call open",
    language: "python",
    source: `
if os.fork() == 0:
    os.setsid(); signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(60); os._exit(0)`,
  },
]

/** Why a file was not handed over, for the caller. */
import type { Unavailable } from "../../terms.ts"
import type { NotStaged } from "./stage.ts"
import type { StagingFault } from "../../exchange.ts"

const WORDS: Readonly<Record<StagingFault, readonly [problem: string, fix: string]>> = {
  absent: ["is not there", "put the file there"],
  link: ["is a symbolic link, or lies behind one", "put the file itself there: links are not followed"],
  hidden: [
    "is hidden from the driver that would get it",
    "take it out of the driver's `fs.deny`, or use another driver",
  ],
  outside: ["lies on another file system, or out of the workspace", "put the file itself there"],
  not_a_file: ["is not a regular file", "put a file there"],
  not_a_folder: ["lies behind something that is no folder", "put the file there"],
  forbidden: ["is closed to the owner of the workspace", "let its owner read it"],
  changed: ["changed while it was read", "run it again when nobody writes to it"],
  too_large: [
    "is, with the others, larger than what the call may write",
    "use a smaller file, or a higher limit of disk space",
  ],
  too_many: ["has too many entries", "put a file there"],
  full: ["does not fit", "free disk space"],
  ended: ["was asked for when the call was over", "run it again"],
}

export const notStaged = ({ file }: NotStaged): Unavailable => {
  const [problem, fix] = WORDS[file.fault]
  return {
    ok: false,
    control: "input-file",
    message: `the input file \`${file.name}\` cannot be handed over: \`${file.path}\` ${problem}`,
    fix,
    file,
  }
}

/** What the machine would not do, in words and with what to do about it; nothing for other failures. Pure. */
const troubles: Readonly<Record<string, readonly [message: string, fix: string]>> = {
  ENOSPC: ["the disk is full", "free disk space there"],
  EDQUOT: ["this user's share of the disk is used up", "free disk space there"],
  EROFS: ["the file system is read-only", "mount it for writing"],
  EACCES: ["access is denied", "mend its permissions"],
  EPERM: ["access is denied", "mend its permissions"],
  EMFILE: ["too many files are open", "raise the limit (`ulimit -n`)"],
  ENFILE: ["too many files are open on this machine", "close some programs"],
  EIO: ["the disk does not answer properly", "look at `dmesg`"],
}

export const machineTrouble = (error: unknown): { readonly message: string; readonly fix: string } | undefined => {
  const { code, message } = (error ?? {}) as NodeJS.ErrnoException
  const [trouble, fix] = troubles[code ?? ""] ?? []
  return trouble === undefined || fix === undefined ? undefined : { message: `${trouble} (${message})`, fix }
}

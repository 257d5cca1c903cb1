/** What a command's end says to a shell. */
export const EXIT = {
  ok: 0,
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The configuration is wrong (EX_CONFIG of sysexits.h). */
  config: 78,
} as const;

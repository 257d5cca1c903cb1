import { destination, type Logger, pino } from "pino";

export type { Logger } from "pino";

/**
 * Pipes take this many bytes as a whole. With more, the lines of several processes that write into one pipe could be mixed.
 */
const WHOLE_BYTES = 4096;

/**
 * JSON lines on standard error, which leaves standard output to people. Never blocks; what is lost at a crash is the last
 * lines. With a number of a worker each line says it.
 */
export function createLogger(level: string, worker?: number): Logger {
  const stderr = destination({ fd: 2, sync: false, ...(worker !== undefined && { maxWrite: WHOLE_BYTES }) });
  // A reader of the log that went away must not take the server with it.
  stderr.on("error", () => undefined);
  return pino(
    {
      level,
      base: worker === undefined ? null : { worker },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      // Nothing secret is ever handed to the logger; this is for the day somebody does it by mistake. Whole paths only:
      // wildcards cost more than the rest of a line.
      redact: {
        paths: ["authorization", "apiKey", "api_key", "key", "secret", "headers", "config", "env"],
        censor: "[redacted]",
      },
    },
    stderr,
  );
}

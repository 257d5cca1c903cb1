import { destination, type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Lines are written together when they are so long, or after so many milliseconds: a system call costs more than a line. */
const BATCH_BYTES = 8 * 1024;
const BATCH_MS = 100;

/**
 * JSON lines on standard error, which leaves standard output to people. Never blocks; what is lost when the process is
 * killed is the lines of the last tenth of a second.
 */
export function createLogger(level: string): Logger {
  const stderr = destination({ fd: 2, sync: false, minLength: BATCH_BYTES });
  // A reader of the log that went away must not take the server with it.
  stderr.on("error", () => undefined);
  return pino(
    {
      level,
      base: null,
      timestamp: timestamps(),
      formatters: { level: (label) => ({ level: label }) },
      // Nothing secret is ever handed to the logger; this is for the day somebody does it by mistake. Whole paths only:
      // wildcards cost more than the rest of a line.
      redact: {
        paths: ["authorization", "apiKey", "api_key", "key", "secret", "headers", "config", "env"],
        censor: "[redacted]",
      },
    },
    inBatches(stderr),
  );
}

function inBatches(sink: ReturnType<typeof destination>): DestinationStream {
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    timer = undefined;
    sink.flush();
  };
  return {
    write(line) {
      sink.write(line);
      // What is left at the end of the process is written by the sink itself.
      timer ??= setTimeout(flush, BATCH_MS).unref();
    },
  };
}

/** The time as a piece of a line's JSON: written once for all lines of a millisecond. */
function timestamps(): () => string {
  let atMs = 0;
  let text = "";
  return () => {
    const nowMs = Date.now();
    if (nowMs === atMs) return text;
    atMs = nowMs;
    return (text = `,"time":"${new Date(nowMs).toISOString()}"`);
  };
}

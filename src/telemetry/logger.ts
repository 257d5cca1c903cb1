import { type DestinationStream, type Logger as Pino, pino } from "pino";
import { LineBatches } from "./line-batches.ts";

/** The log of one process. */
export interface Logger extends Pino {
  /**
   * One line of what there is one of for each request, at a quarter of the cost of `info`: its fields are written as they
   * are, and none is looked for that should not be there. To be given what is of our own making.
   */
  line(level: "info" | "error", fields: object, message: string): void;
}

/**
 * JSON lines on standard error, which leaves standard output to people. Never blocks; what is lost when the process is
 * killed is the lines of the last tenth of a second. Each line says whose process it is, and a worker's its number.
 */
export function createLogger(level: string, worker?: number): Logger {
  const batches = new LineBatches(2, { isShared: worker !== undefined });
  const lines = { write: (line: string) => batches.write(hideKeys(line)) };
  const time = timestamps(`,"pid":${process.pid}${worker === undefined ? "" : `,"worker":${worker}`}`);
  const log = pino(
    {
      level,
      base: null,
      timestamp: time,
      formatters: { level: (label) => ({ level: label }) },
      // Nothing secret is ever handed to the logger; this is for the day somebody does it by mistake. Whole paths only:
      // wildcards cost more than the rest of a line.
      redact: {
        paths: ["authorization", "apiKey", "api_key", "key", "secret", "headers", "config", "env"],
        censor: "[redacted]",
      },
    },
    lines,
  );
  return withLines(log, { lines, time });
}

/** Callers put their keys into paths, models' names and request IDs by mistake, all of which are logged. */
function hideKeys(line: string): string {
  return line.includes("sk_parley_") ? line.replaceAll(/sk_parley_[0-9A-Za-z]+/g, "sk_parley_[redacted]") : line;
}

/** Adds `line` to a logger that writes its lines to `lines`, each with the `time`. */
export function withLines(
  log: Pino,
  { lines, time = timestamps() }: { readonly lines: DestinationStream; readonly time?: () => string },
): Logger {
  return Object.assign(log, {
    line(at: "info" | "error", fields: object, message: string) {
      if (!log.isLevelEnabled(at)) return;
      const text = JSON.stringify(fields).slice(1, -1);
      lines.write(`{"level":"${at}"${time()},${text},"msg":${JSON.stringify(message)}}\n`);
    },
  });
}

/** The time, and what is in every line, as a piece of its JSON: written once for all lines of a millisecond. */
function timestamps(more = ""): () => string {
  let atMs = 0;
  let text = "";
  return () => {
    const nowMs = Date.now();
    if (nowMs === atMs) return text;
    atMs = nowMs;
    return (text = `,"time":"${new Date(nowMs).toISOString()}"${more}`);
  };
}

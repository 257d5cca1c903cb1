import type { IncomingMessage } from "node:http";
import type { Mode } from "../../../src/core/router.ts";
import { inShort, type Reply, type SeenFailure, type SeenReport } from "./reply.ts";

interface AttemptJson {
  readonly model: string;
  readonly outcome: string;
  readonly upstream_status: number | null;
}

interface PictureJson {
  readonly image_url: { readonly url: string };
}

interface SpeechJson {
  readonly content?:
    | string
    | null
    | readonly ({ readonly type: string; readonly text?: string } & Partial<PictureJson>)[];
  readonly images?: readonly PictureJson[];
}

/** Checked fields of a completion, a chunk and an error. */
interface ReplyJson {
  readonly model?: string;
  readonly choices?: readonly {
    readonly message?: SpeechJson;
    readonly delta?: SpeechJson;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly parley?: {
    readonly attempts: readonly AttemptJson[];
    readonly omitted: readonly string[];
    readonly clamped: readonly {
      readonly field: string;
      readonly requested: number | string;
      readonly sent: number | string;
    }[];
  };
  readonly error?: {
    readonly type: string;
    readonly message: string;
    readonly param: string | null;
    readonly code?: string | null;
    readonly attempts?: readonly AttemptJson[];
  };
}

const DONE = "[DONE]";

/** Parses a response of the HTTP entrance, whole or streamed. */
export function readHttpReply({ statusCode = 0, headers }: IncomingMessage, body: string, mode: Mode): Reply {
  const streamed = mode === "stream" && statusCode === 200;
  const events = streamed ? body.split("\n\n").flatMap((event) => /^data: (.*)$/.exec(event)?.[1] ?? []) : [body];
  const parts = events.filter((event) => event !== DONE).map((event) => JSON.parse(event) as ReplyJson);
  const choices = parts.flatMap((part) => part.choices ?? []);
  const speech = choices.map(({ message, delta }) => message ?? delta ?? {});
  const usage = parts.map((part) => part.usage).find((each) => each != null);
  const report = parts.map((part) => part.parley).find((each) => each !== undefined);
  const error = parts.map((part) => part.error).find((each) => each !== undefined);
  return {
    model: parts[0]?.model,
    text: speech.map(textOf).join(""),
    pictures: speech.flatMap(picturesOf),
    finishReasons: choices.flatMap(({ finish_reason: reason }) => reason ?? []),
    usage: usage && `${usage.prompt_tokens}+${usage.completion_tokens}`,
    report: report && readReport(report),
    facts: headers as Reply["facts"],
    complete: streamed ? events.at(-1) === DONE : error === undefined,
    failure: error && readFailure(error, { statusCode, headers, streamed }),
  };
}

function textOf({ content }: SpeechJson): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("");
}

function picturesOf({ content, images = [] }: SpeechJson): string[] {
  const parts = Array.isArray(content) ? (content as readonly Partial<PictureJson>[]) : [];
  return [...parts, ...images].flatMap(({ image_url: image }) =>
    image === undefined ? [] : image.url.replace("data:image/png;base64,", ""),
  );
}

function readReport({ attempts, omitted, clamped }: NonNullable<ReplyJson["parley"]>): SeenReport {
  return {
    attempts: attempts.map(readAttempt),
    omitted,
    clamped: clamped.map(({ field, requested, sent }) => `${field} ${requested}>${sent}`),
  };
}

function readFailure(
  error: NonNullable<ReplyJson["error"]>,
  response: { statusCode: number; headers: IncomingMessage["headers"]; streamed: boolean },
): SeenFailure {
  const { statusCode, headers, streamed } = response;
  const retryAfter = headers["retry-after"];
  return {
    status: `${statusCode} ${error.type}`,
    code: error.code === undefined ? "absent" : error.code,
    message: error.message,
    param: error.param,
    attempts: (error.attempts ?? []).map(readAttempt),
    retryAfterS: retryAfter === undefined ? undefined : Number(retryAfter),
    final: streamed ? undefined : headers["x-should-retry"] === "false",
  };
}

function readAttempt({ model, outcome, upstream_status: status }: AttemptJson): string {
  return inShort({ model, outcome, status });
}

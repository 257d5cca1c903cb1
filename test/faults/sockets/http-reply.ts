import type { Reply, ToldFailure } from "./reply.ts";

/** Checked fields of a completion, a chunk and an error. */
interface AnswerJson {
  readonly model?: string;
  readonly choices?: readonly {
    readonly message?: { readonly content?: string | null };
    readonly delta?: { readonly content?: string | null };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly error?: { readonly type: string; readonly code?: string | null; readonly message: string };
}

/** An HTTP response: `ended` when its body is complete. */
export interface HttpAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly ended: boolean;
}

/** Parses a response of the OpenAI-compatible API after its connection has ended or the body is complete. */
export function readHttpAnswer({ status, type, body, ended }: HttpAnswer): Reply {
  if (!type.startsWith("text/event-stream")) {
    if (!ended) return { end: "broken", text: "", breaches: [] };
    return readWhole(status, JSON.parse(body) as AnswerJson);
  }
  return readStream(body, ended);
}

function readWhole(status: number, json: AnswerJson): Reply {
  const { error, choices = [], model, usage } = json;
  if (error !== undefined) return { end: "failed", text: "", failure: told(error, status), breaches: [] };
  const [choice] = choices;
  return {
    end: "complete",
    text: choice?.message?.content ?? "",
    model,
    usage: readUsage(usage),
    breaches: [
      ...(status === 200 ? [] : [`an answer with status ${status}`]),
      ...(choices.length === 1 && choice?.finish_reason === "stop" ? [] : ["an answer without its one finish"]),
    ],
  };
}

/** Returns the text of the complete events. */
export function textOfEvents(body: string): string {
  return eventsOf(body)
    .filter((data) => data !== DONE)
    .map((data) => (JSON.parse(data) as AnswerJson).choices?.[0]?.delta?.content ?? "")
    .join("");
}

const DONE = "[DONE]";

function eventsOf(body: string): string[] {
  return body
    .split("\n\n")
    .slice(0, -1)
    .flatMap((event) => (event.startsWith("data: ") ? [event.slice("data: ".length)] : []));
}

function readStream(body: string, ended: boolean): Reply {
  const events = eventsOf(body);
  const isDone = events.at(-1) === DONE;
  const chunks = events.filter((data) => data !== DONE).map((data) => JSON.parse(data) as AnswerJson);
  const error = chunks.at(-1)?.error;
  const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
  const finishes = choices.filter((choice) => choice.finish_reason !== null);
  const said = {
    text: choices.map((choice) => choice.delta?.content ?? "").join(""),
    model: chunks[0]?.model,
    usage: chunks.map((chunk) => readUsage(chunk.usage)).find((usage) => usage !== undefined),
  };
  const breaches = [
    ...(events.filter((data) => data === DONE).length > (isDone ? 1 : 0) ? ["an end that is not the last event"] : []),
    ...(chunks.slice(0, -1).some((chunk) => chunk.error !== undefined) ? ["events after an error"] : []),
    ...(isDone && error !== undefined ? ["an end after an error"] : []),
    ...(isDone && finishes.length !== 1 ? [`${finishes.length} finishes`] : []),
    ...(isDone && !ended ? ["an end, and then a body that is cut"] : []),
  ];
  if (error !== undefined) return { end: "failed", ...said, failure: told(error), breaches };
  return { end: isDone ? "complete" : "broken", ...said, breaches };
}

function told(error: NonNullable<AnswerJson["error"]>, http?: number): ToldFailure {
  return { http, type: error.type, code: error.code, message: error.message };
}

function readUsage(usage: AnswerJson["usage"]): Reply["usage"] {
  return usage ? { prompt: usage.prompt_tokens, completion: usage.completion_tokens } : undefined;
}

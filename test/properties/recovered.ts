import { splitMarked } from "./marks.ts";

/** Where in a provider's request a text stands. */
export type Place = "system" | "user" | "assistant" | "result";

/** What of a conversation can be read back from a provider's request, each list in the order in which it stands there. */
export interface Recovered {
  readonly texts: { readonly text: string; readonly place: Place }[];
  /** In base64. */
  readonly pictures: string[];
  readonly calls: { readonly id: string; readonly name: string }[];
  readonly results: { readonly id: string; readonly text: string }[];
  /** Reasoning blocks with their state. */
  readonly reasoning: unknown[];
  readonly tools: { readonly name: string; readonly description: string }[];
}

/** JSON that was read: every field of it may be anything. */
type Json = { readonly [name: string]: Json } & readonly Json[] & string;

class Reader {
  readonly recovered: Recovered = { texts: [], pictures: [], calls: [], results: [], reasoning: [], tools: [] };

  text(text: string, place: Place): void {
    for (const piece of splitMarked(text)) this.recovered.texts.push({ text: piece, place });
  }

  result(id: string, text: string): void {
    this.recovered.results.push({ id, text });
  }

  picture(url: string): void {
    this.recovered.pictures.push(url.replace(/^data:[^,]*,/u, ""));
  }

  tool(name: string, description: string | undefined): void {
    this.recovered.tools.push({ name, description: description ?? "" });
  }
}

function list(value: Json | undefined): readonly Json[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [{ type: "text", text: value } as unknown as Json] : value;
}

/** Reads the body of `POST /v1/messages`. */
export function recoverAnthropic(body: unknown): Recovered {
  const { system, messages, tools } = body as Json;
  const reader = new Reader();
  for (const block of list(system)) reader.text(block["text"]!, "system");
  for (const { role, content } of list(messages)) {
    for (const block of list(content)) readBlock(block, role as unknown as Place, reader);
  }
  for (const { name, description } of list(tools)) reader.tool(name!, description);
  return reader.recovered;
}

function readBlock(block: Json, place: Place, reader: Reader): void {
  const { type, text, source, id, name, tool_use_id: callId, content } = block;
  if (type === "text") reader.text(text!, place);
  else if (type === "image") reader.picture(source!["data"]!);
  else if (type === "tool_use") reader.recovered.calls.push({ id: id!, name: name! });
  else if (type === "tool_result") {
    reader.result(
      callId!,
      list(content)
        .map((part) => part["text"] ?? "")
        .join(""),
    );
    for (const part of list(content)) if (part["type"] !== "text") readBlock(part, place, reader);
  } else reader.recovered.reasoning.push(block);
}

/** Reads the body of `generateContent`. Results are as JSON text where they were an object. */
export function recoverGemini(body: unknown, stringify: (value: unknown) => string): Recovered {
  const { systemInstruction, contents, tools } = body as Json;
  const reader = new Reader();
  for (const { text } of list(systemInstruction?.["parts"])) reader.text(text!, "system");
  for (const { role, parts } of list(contents)) {
    const place = String(role) === "model" ? "assistant" : "user";
    for (const { text, inlineData, functionCall, functionResponse } of list(parts)) {
      if (text !== undefined) reader.text(text, place);
      if (inlineData !== undefined) reader.picture(inlineData["data"]!);
      if (functionCall !== undefined)
        reader.recovered.calls.push({ id: functionCall["id"]!, name: functionCall["name"]! });
      if (functionResponse === undefined) continue;
      const { id, response, parts: pictures } = functionResponse;
      const output = response!["output"];
      reader.result(id!, typeof output === "string" ? output : stringify(response));
      for (const part of list(pictures)) reader.picture(part["inlineData"]!["data"]!);
    }
  }
  for (const tool of list(tools)) {
    for (const { name, description } of list(tool["functionDeclarations"])) reader.tool(name!, description);
  }
  return reader.recovered;
}

/** Reads the body of `POST /v1/chat/completions`. */
export function recoverOpenAi(body: unknown): Recovered {
  const { messages, tools } = body as Json;
  const reader = new Reader();
  for (const { role, content, tool_calls: calls, tool_call_id: callId } of list(messages)) {
    const parts = list(content ?? undefined);
    if (String(role) === "tool") {
      reader.result(callId!, parts.map(({ text }) => text ?? "").join(""));
      continue;
    }
    for (const { text, image_url: image } of parts) {
      if (text !== undefined) reader.text(text, role as unknown as Place);
      if (image !== undefined) reader.picture(image["url"]!);
    }
    for (const call of list(calls)) reader.recovered.calls.push({ id: call["id"]!, name: call["function"]!["name"]! });
  }
  for (const { function: described } of list(tools)) reader.tool(described!["name"]!, described!["description"]);
  return reader.recovered;
}

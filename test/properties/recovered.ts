import { markOf, splitMarked } from "./marks.ts";

/** Where in a provider's request a text stands. */
type Place = "system" | "user" | "assistant" | "result";

/** What of a conversation can be read back from a provider's request, each list in the order in which it stands there. */
export interface Recovered {
  readonly texts: { readonly text: string; readonly place: Place }[];
  /** Pictures, recordings, videos and documents in base64, or by their address. */
  readonly media: string[];
  readonly calls: { readonly id: string; readonly name: string }[];
  readonly results: { readonly id: string; readonly text: string; readonly isError: boolean }[];
  /** Signatures of parts, without placeholders. */
  readonly signatures: string[];
  /** What assistants say and do: a text by its mark, data in base64, a call by its name, reasoning by this word. */
  readonly answers: string[];
  /** Reasoning blocks with their state. */
  readonly reasoning: unknown[];
  readonly tools: { readonly name: string; readonly description: string }[];
}

/** JSON that was read: every field of it may be anything. */
type Json = { readonly [name: string]: Json } & readonly Json[] & string;

class Reader {
  readonly recovered: Recovered = {
    texts: [],
    media: [],
    calls: [],
    results: [],
    signatures: [],
    answers: [],
    reasoning: [],
    tools: [],
  };

  text(text: string, place: Place): void {
    for (const piece of splitMarked(text)) {
      this.recovered.texts.push({ text: piece, place });
      if (place === "assistant") this.recovered.answers.push(markOf(piece));
    }
  }

  result(id: string, text: string, isError = false): void {
    this.recovered.results.push({ id, text, isError });
  }

  media(url: string, place: Place): void {
    const data = url.replace(/^data:[^,]*,/u, "");
    this.recovered.media.push(data);
    if (place === "assistant") this.recovered.answers.push(data);
  }

  call(id: string, name: string): void {
    this.recovered.calls.push({ id, name });
    this.recovered.answers.push(name);
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
  const { type, text, source, id, name, tool_use_id: callId, content, is_error: isError } = block;
  if (type === "text") reader.text(text!, place);
  else if (type === "image" || type === "document") reader.media(source!["data"]!, place);
  else if (type === "tool_use") reader.call(id!, name!);
  else if (type === "tool_result") {
    reader.result(
      callId!,
      list(content)
        .map((part) => part["text"] ?? "")
        .join(""),
      Boolean(isError),
    );
    for (const part of list(content)) if (part["type"] !== "text") readBlock(part, place, reader);
  } else {
    reader.recovered.reasoning.push(block);
    reader.recovered.answers.push("reasoning");
  }
}

/** Reads the body of `generateContent`. Results are as JSON text where they were an object. */
export function recoverGemini(body: unknown, stringify: (value: unknown) => string): Recovered {
  const { systemInstruction, contents, tools } = body as Json;
  const reader = new Reader();
  for (const { text } of list(systemInstruction?.["parts"])) reader.text(text!, "system");
  for (const { role, parts } of list(contents)) {
    const place = String(role) === "model" ? "assistant" : "user";
    for (const part of list(parts)) {
      const { text, inlineData, fileData, functionCall, functionResponse, thoughtSignature: signature } = part;
      if (signature !== undefined && !signature.startsWith("skip_")) reader.recovered.signatures.push(signature);
      if (text !== undefined) reader.text(text, place);
      if (inlineData !== undefined) reader.media(inlineData["data"]!, place);
      if (fileData !== undefined) reader.media(fileData["fileUri"]!, place);
      if (functionCall !== undefined) reader.call(functionCall["id"]!, functionCall["name"]!);
      if (functionResponse === undefined) continue;
      const { id, response, parts: pictures } = functionResponse;
      const { output, error } = response!;
      if (typeof error === "string" && Object.keys(response!).length === 1) reader.result(id!, error, true);
      else reader.result(id!, typeof output === "string" ? output : stringify(response));
      for (const picture of list(pictures)) reader.media(picture["inlineData"]!["data"]!, "result");
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
  for (const { role, content, refusal, tool_calls: calls, tool_call_id: callId } of list(messages)) {
    const parts = list(content ?? undefined);
    if (String(role) === "tool") {
      reader.result(callId!, parts.map(({ text }) => text ?? "").join(""));
      continue;
    }
    for (const { text, image_url: image, input_audio: recording, file } of parts) {
      if (text !== undefined) reader.text(text, role as unknown as Place);
      if (image !== undefined) reader.media(image["url"]!, "user");
      if (recording !== undefined) reader.media(recording["data"]!, "user");
      if (file !== undefined) reader.media(file["file_data"]!, "user");
    }
    if (refusal !== undefined) reader.text(refusal, "assistant");
    for (const call of list(calls)) reader.call(call["id"]!, call["function"]!["name"]!);
  }
  for (const { function: described } of list(tools)) reader.tool(described!["name"]!, described!["description"]);
  return reader.recovered;
}

/** Reads the body of `POST /v1/responses`. */
export function recoverResponses(body: unknown): Recovered {
  const { instructions, input, tools } = body as Json;
  const reader = new Reader();
  if (instructions !== undefined) reader.text(instructions, "system");
  for (const item of list(input)) {
    const { type, role, content, call_id: callId, name, output } = item;
    switch (String(type)) {
      case "message":
        for (const part of list(content)) readContent(part, role as unknown as Place, reader);
        break;
      case "function_call":
        reader.call(callId!, name!);
        break;
      case "function_call_output":
        reader.result(
          callId!,
          list(output)
            .map((part) => part["text"] ?? "")
            .join(""),
        );
        for (const part of list(output)) if (part["text"] === undefined) readContent(part, "result", reader);
        break;
      default:
        reader.recovered.reasoning.push(item);
        reader.recovered.answers.push("reasoning");
    }
  }
  for (const { name, description } of list(tools)) reader.tool(name!, description);
  return reader.recovered;
}

function readContent(part: Json, place: Place, reader: Reader): void {
  const { text, refusal, image_url: image, input_audio: recording, file_data: file } = part;
  if (text !== undefined) reader.text(text, place);
  if (refusal !== undefined) reader.text(refusal, place);
  const media = image ?? recording?.["data"] ?? file;
  if (media !== undefined) reader.media(media, place);
}

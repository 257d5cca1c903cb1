export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Posts JSON with an API key. */
export function postJson(
  url: string,
  key: string,
  body: unknown,
  { headers, signal }: PostOptions = {},
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
}

/** Posts a chat completion to the gateway at `url`, by default with the message "hi". */
export function postChat(url: string, key: string, fields: object, options?: PostOptions): Promise<Response> {
  const messages = [{ role: "user", content: "hi" }];
  return postJson(`${url}/v1/chat/completions`, key, { messages, ...fields }, options);
}

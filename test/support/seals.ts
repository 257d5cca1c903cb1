/*
 * The gateway puts a seal before the state of a provider (`core/provider-state.ts`) and accepts state only with its
 * seal. Recorded exchanges have the state without a seal, as the provider sent it.
 */

const SEAL = /PLY1[A-Za-z0-9]{28}/g;
/** Base64 of a JSON object with the state, which formats use where they have no field for state. */
const CARRIED = /eyJwYXJsZXki[A-Za-z0-9+/]+={0,2}/g;

/** Returns a text without its seals. */
export function withoutSeals(text: string): string {
  const decoded = (base64: string): string => Buffer.from(base64, "base64").toString().replace(SEAL, "");
  return text.replace(CARRIED, (base64) => Buffer.from(decoded(base64)).toString("base64")).replace(SEAL, "");
}

const STATE: ReadonlySet<string> = new Set(["signature", "thoughtSignature", "thought_signature"]);

/** Returns a copy of a request with the provider's state sealed. */
export function withSeals<T>(request: T, seal: (state: string) => string): T {
  return JSON.parse(JSON.stringify(request), (key, value: unknown) => {
    if (typeof value === "string") return STATE.has(key) && value !== "" ? seal(value) : value;
    const block = value as { readonly type?: unknown; readonly data?: unknown } | null;
    if (block?.type === "redacted_thinking") return { ...block, data: seal(String(block.data)) };
    return value;
  }) as T;
}

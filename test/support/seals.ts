/*
 * State of providers leaves the gateway with a seal before it (`core/provider-state.ts`), and has to come back with it. Recorded
 * exchanges have it as providers gave it.
 */

const SEAL = /PLY1[A-Za-z0-9]{28}/g;
/** State in the base64 in which formats carry it where they have no place for it. */
const CARRIED = /eyJwYXJsZXki[A-Za-z0-9+/]+={0,2}/g;

/** A text without the seals in it. */
export function withoutSeals(text: string): string {
  const decoded = (base64: string): string => Buffer.from(base64, "base64").toString().replace(SEAL, "");
  return text.replace(CARRIED, (base64) => Buffer.from(decoded(base64)).toString("base64")).replace(SEAL, "");
}

const STATE: ReadonlySet<string> = new Set(["signature", "thoughtSignature", "thought_signature"]);

/** A copy of a request in which the state of a provider is sealed. */
export function withSeals<T>(request: T, seal: (state: string) => string): T {
  return JSON.parse(JSON.stringify(request), (key, value: unknown) => {
    if (typeof value === "string") return STATE.has(key) && value !== "" ? seal(value) : value;
    const block = value as { readonly type?: unknown; readonly data?: unknown } | null;
    if (block?.type === "redacted_thinking") return { ...block, data: seal(String(block.data)) };
    return value;
  }) as T;
}

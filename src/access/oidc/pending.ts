import { hash, timingSafeEqual } from "node:crypto";
import { generateToken, isToken } from "../secret-token.ts";

/** How long a sign-in may take at the provider. */
export const PENDING_MS = 10 * 60_000;

/** Longest path to return to. */
const MAX_PATH = 1_000;

/** A sign-in that has begun, kept in a cookie of its browser and nowhere else. */
export interface Pending {
  /** A secret that only this browser has. */
  readonly token: string;
  /** `confirm`: the signed-in person confirms their identity. */
  readonly purpose: "sign_in" | "confirm";
  /** Path of this server to return to. */
  readonly path: string;
  /** The token of a browser that may be known: the provider's answer arrives without its cookie, which is `SameSite=Strict`. */
  readonly browserToken: string | undefined;
}

/**
 * Values that bind the provider's answer to the browser: one-way functions of the token, so that the URL does not show it.
 */
export interface Binding {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636). */
  readonly codeVerifier: string;
}

export function begin(begun: Omit<Pending, "token">): Pending {
  return { token: generateToken(), ...begun };
}

export function bindingOf({ token }: Pending): Binding {
  const derive = (use: string): string => hash("sha256", `parley ${use} ${token}`, "base64url");
  return { state: derive("state"), nonce: derive("nonce"), codeVerifier: derive("code verifier") };
}

/** Whether a state belongs to a sign-in of this browser. */
export function hasState(pending: Pending, state: string): boolean {
  const expected = Buffer.from(bindingOf(pending).state);
  const given = Buffer.from(state);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

export function writePending({ token, purpose, path, browserToken = "" }: Pending): string {
  return [token, purpose, Buffer.from(path).toString("base64url"), browserToken].join(".");
}

/** Undefined for a text that is not of `writePending`. */
export function readPending(text: string): Pending | undefined {
  const [token = "", purpose, path = "", browserToken = "", ...rest] = text.split(".");
  if (!isToken(token) || rest.length > 0 || (purpose !== "sign_in" && purpose !== "confirm")) return undefined;
  return {
    token,
    purpose,
    path: localPath(Buffer.from(path, "base64url").toString()),
    browserToken: isToken(browserToken) ? browserToken : undefined,
  };
}

/** The path, query and fragment of an address of this server; `/` for anything else. */
export function localPath(text: string): string {
  if (text.length > MAX_PATH || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text)) return "/";
  const base = "http://parley.invalid";
  const url = URL.parse(text, base);
  // Without its dots, `/..//example.com` is an address of another server.
  return url?.origin === base && !url.pathname.startsWith("//") ? url.pathname + url.search + url.hash : "/";
}

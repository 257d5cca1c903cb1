import type { AccessContext } from "./context.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";

const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

/** State of the setup of an installation's first owner. */
export interface SetupState {
  /** Whether the installation has an owner; then there is no token. */
  readonly hasOwner: boolean;
  /**
   * Token for the sign-up page; undefined where none is needed and where sign-up is closed. Valid for seven days and one
   * use.
   */
  readonly token: string | undefined;
}

/**
 * Makes a setup token where one is needed, to be shown to the operator. Each process of an installation makes its own, and
 * all accept any of them: their hashes are in the database.
 */
export async function prepareSetup(
  context: Pick<AccessContext, "store" | "clock" | "signUp" | "isExposed">,
): Promise<SetupState> {
  const { store, clock, signUp } = context;
  const hasOwner = await store.isClaimed();
  if (hasOwner || !context.isExposed || signUp === "closed") return { hasOwner, token: undefined };
  const token = generateToken();
  const nowMs = clock.now();
  await store.insertSetupToken({ hash: hashToken(token), expiresAtMs: nowMs + LIFETIME_MS }, nowMs);
  return { hasOwner, token };
}

/** Whether a text is a valid setup token of this installation. Found by its hash, so the comparison leaks no timing. */
export async function isSetupToken(
  { store, clock }: Pick<AccessContext, "store" | "clock">,
  text: string | undefined,
): Promise<boolean> {
  if (text === undefined || !isToken(text)) return false;
  const found = await store.findSetupToken(hashToken(text));
  return found !== undefined && clock.now() < found.expiresAtMs;
}

import { Code, ConnectError } from "@connectrpc/connect";
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/browser";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { factors } from "./factors.ts";

/** Asks the browser for a passkey: one of the session's account, or without a session any. Returns its response as JSON. */
export async function askForPasskey(): Promise<string> {
  const { optionsJson } = await factors.getPasskeyOptions({});
  const { startAuthentication } = await import("@simplewebauthn/browser");
  return respond(() =>
    startAuthentication({ optionsJSON: JSON.parse(optionsJson) as PublicKeyCredentialRequestOptionsJSON }),
  );
}

/** Begins a session with a passkey. */
export async function signInByPasskey() {
  return factors.signInByPasskey({ responseJson: await askForPasskey() });
}

/** Makes a passkey with the options of a service. Returns the browser's response as JSON. */
export async function createPasskey(optionsJson: string): Promise<string> {
  const { startRegistration } = await import("@simplewebauthn/browser");
  return respond(() =>
    startRegistration({ optionsJSON: JSON.parse(optionsJson) as PublicKeyCredentialCreationOptionsJSON }),
  );
}

/**
 * Converts errors of the browser to errors of a call. A prompt that the user dismissed becomes a cancelled call, which
 * shows no error.
 */
async function respond(ask: () => Promise<object>): Promise<string> {
  try {
    return JSON.stringify(await ask());
  } catch (reason) {
    const { name } = reason as Error;
    if (name === "NotAllowedError" || name === "AbortError")
      throw new ConnectError("the passkey was not used", Code.Canceled);
    const text =
      name === "InvalidStateError"
        ? "This device has a passkey for your account already."
        : "This browser could not use a passkey here.";
    throw new ConnectError(text, Code.FailedPrecondition, undefined, [
      { desc: ErrorInfoSchema, value: { domain: "parley" } },
    ]);
  }
}

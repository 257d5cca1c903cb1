import { createHash, generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto";
import { isoCBOR } from "@simplewebauthn/server/helpers";
import { CertificateAuthority, type CertificateRequest } from "./certificates.ts";

/** A device with one passkey, for one origin. */
export interface Device {
  /**
   * A browser's response with the new passkey and the statement `android-key` (WebAuthn, 8.4): its key is vouched for by a certificate of
   * an authority that the caller has made, whose revocation list is at this address.
   */
  attest(optionsJson: string, facts: { readonly listAt: string; readonly transports?: unknown }): string;
  /** A browser's response to a sign-in. */
  use(optionsJson: string, facts: { readonly userHandle: string | null }): string;
}

interface Options {
  readonly challenge: string;
  /** Of a new passkey. */
  readonly rp?: { readonly id: string };
  /** Of a use. */
  readonly rpId?: string;
}

const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");
const decode = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "base64url"));

/** Creates a device whose person is always present and verified, and which does not count. */
export function createDevice(origin: string): Device {
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = pair.publicKey.export({ format: "jwk" });
  const id = randomBytes(16);
  const key = isoCBOR.encode(
    new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, decode(x)],
      [-3, decode(y)],
    ]),
  );
  const clientDataOf = (type: string, { challenge }: Options): Buffer =>
    Buffer.from(JSON.stringify({ type, challenge, origin }));
  const factsOf = (rpId: string, flags: number, more: readonly Uint8Array[] = []): Buffer =>
    Buffer.concat([sha256(rpId), Buffer.of(flags), Buffer.alloc(4), ...more]);
  const credential = { id: encode(id), rawId: encode(id), type: "public-key", clientExtensionResults: {} };
  return {
    attest(optionsJson, { listAt, transports = ["internal"] }) {
      const options = JSON.parse(optionsJson) as Options;
      const clientData = clientDataOf("webauthn.create", options);
      // Without the model.
      const facts = factsOf(options.rp!.id, 0x45, [Buffer.alloc(16), Buffer.of(0, id.length), id, key]);
      const statement = new Map<string, unknown>([
        ["alg", -7],
        ["sig", new Uint8Array(70)],
        ["x5c", certificatesOf(pair, { clientData, listAt })],
      ]);
      const attestation = new Map<string, unknown>([
        ["fmt", "android-key"],
        ["attStmt", statement],
        ["authData", new Uint8Array(facts)],
      ]);
      const attestationObject = encode(isoCBOR.encode(attestation as Parameters<typeof isoCBOR.encode>[0]));
      const response = { clientDataJSON: encode(clientData), attestationObject, transports };
      return JSON.stringify({ ...credential, response });
    },

    use(optionsJson, { userHandle }) {
      const options = JSON.parse(optionsJson) as Options;
      const clientData = clientDataOf("webauthn.get", options);
      const facts = factsOf(options.rpId!, 0x05);
      const signature = sign("sha256", Buffer.concat([facts, sha256(clientData)]), pair.privateKey);
      const response = {
        clientDataJSON: encode(clientData),
        authenticatorData: encode(facts),
        signature: encode(signature),
        userHandle,
      };
      return JSON.stringify({ ...credential, response });
    },
  };
}

/** The certificates of a key: its own, which has the challenge, and that of its authority. */
function certificatesOf(
  pair: NonNullable<CertificateRequest["pair"]>,
  { clientData, listAt }: { readonly clientData: Buffer; readonly listAt: string },
): Uint8Array[] {
  const authority = new CertificateAuthority();
  // `KeyDescription`: versions and levels, the challenge, no unique ID, no properties.
  const description = Buffer.concat([
    Buffer.from("30340201030a01010201040a01010420", "hex"),
    sha256(clientData),
    Buffer.from("040030003000", "hex"),
  ]);
  const { cert } = authority.issue({ pair, listAt, extensions: { "1.3.6.1.4.1.11129.2.1.17": description } });
  return [cert, authority.cert].map((pem) => new Uint8Array(new X509Certificate(pem).raw));
}

function sha256(content: string | Buffer): Buffer {
  return createHash("sha256").update(content).digest();
}

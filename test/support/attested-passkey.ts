import { createHash, generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto";
import { isoCBOR } from "@simplewebauthn/server/helpers";
import { CertificateAuthority } from "./certificates.ts";

interface AttestedPasskey {
  /** Of `BeginPasskey`. */
  readonly optionsJson: string;
  readonly origin: string;
  /** Address of the revocation list in the certificate of the device. */
  readonly listAt: string;
}

/**
 * A browser's response with a new passkey and the statement `android-key` of its device (WebAuthn, 8.4): its key is vouched for by a
 * certificate of an authority that the caller has made.
 */
export function attestedPasskey({ optionsJson, origin, listAt }: AttestedPasskey): string {
  const { challenge, rp } = JSON.parse(optionsJson) as { readonly challenge: string; readonly rp: { id: string } };
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = pair.publicKey.export({ format: "jwk" });
  const coordinate = (text: string) => new Uint8Array(Buffer.from(text, "base64url"));
  const key = isoCBOR.encode(
    new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, coordinate(x)],
      [-3, coordinate(y)],
    ]),
  );
  const id = randomBytes(16);
  const idBytes = Buffer.concat([Buffer.of(0, id.length), id]);
  // Present and verified, with a key; no counter, no model.
  const facts = Buffer.concat([Buffer.of(0x45), Buffer.alloc(4), Buffer.alloc(16), idBytes, key]);
  const clientData = Buffer.from(JSON.stringify({ type: "webauthn.create", challenge, origin }));
  const authority = new CertificateAuthority();
  // `KeyDescription`: versions and levels, the challenge, no unique ID, no properties.
  const description = Buffer.concat([
    Buffer.from("30340201030a01010201040a01010420", "hex"),
    sha256(clientData),
    Buffer.from("040030003000", "hex"),
  ]);
  const { cert } = authority.issue({ pair, listAt, extensions: { "1.3.6.1.4.1.11129.2.1.17": description } });
  const x5c = [cert, authority.cert].map((pem) => new Uint8Array(new X509Certificate(pem).raw));
  const attestation = isoCBOR.encode(
    new Map<string, unknown>([
      ["fmt", "android-key"],
      ["attStmt", new Map<string, unknown>([["alg", -7], ["sig", new Uint8Array(70)], ["x5c", x5c]])],
      ["authData", new Uint8Array(Buffer.concat([sha256(rp.id), facts]))],
    ]) as Parameters<typeof isoCBOR.encode>[0],
  );
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");
  return JSON.stringify({
    id: text(id),
    rawId: text(id),
    type: "public-key",
    clientExtensionResults: {},
    response: { clientDataJSON: text(clientData), attestationObject: text(attestation), transports: ["internal"] },
  });
}

function sha256(content: string | Buffer): Buffer {
  return createHash("sha256").update(content).digest();
}

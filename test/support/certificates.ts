import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A certificate and its private key in PEM, as written to files. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateRequest {
  /** Alternative names, such as `DNS:localhost`, `IP:127.0.0.1` or `URI:spiffe://example.org/billing`. */
  readonly names?: readonly string[];
  /** Default: a day ago. */
  readonly validFrom?: Date;
  /** Default: in ten years. */
  readonly validTo?: Date;
  /** Its keys. Default: new ones of P-256. */
  readonly pair?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  /** Address of the revocation list. Default: none. */
  readonly listAt?: string;
  /** Further extensions: their values in DER by their OIDs. */
  readonly extensions?: Readonly<Record<string, Buffer>>;
}

export interface ListRequest {
  /** Revoked certificates. Default: none. */
  readonly revoked?: readonly TestCertificate[];
  /** Default: a day ago. */
  readonly validFrom?: Date;
  /** Default: in a day. */
  readonly validTo?: Date;
}

/** Names under which the tests' servers are reached. */
export const LOCAL_NAMES = ["DNS:localhost", "IP:127.0.0.1"] as const;

const DAY_MS = 24 * 60 * 60 * 1000;

/** An authority that issues certificates of version 3 (RFC 5280) for tests, with keys of P-256. */
export class CertificateAuthority {
  /** Its own certificate in PEM. */
  readonly cert: string;
  readonly #key: KeyObject;
  readonly #name: string;

  constructor(name = "test authority") {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    this.#name = name;
    this.cert = this.#sign({ subject: name, publicKey, isAuthority: true });
  }

  /** Issues a certificate. */
  issue(request: CertificateRequest = {}): TestCertificate {
    const { publicKey, privateKey } = request.pair ?? generateKeyPairSync("ec", { namedCurve: "P-256" });
    const cert = this.#sign({ subject: "test", publicKey, isAuthority: false, ...request });
    return { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
  }

  /** Issues a revocation list (RFC 5280, 5) in PEM. */
  list({
    revoked = [],
    validFrom = new Date(Date.now() - DAY_MS),
    validTo = new Date(Date.now() + DAY_MS),
  }: ListRequest = {}): string {
    const algorithm = sequence([oid("1.2.840.10045.4.3.2")]);
    const entries = revoked.map(({ cert }) => {
      const serial = Buffer.from(new X509Certificate(cert).serialNumber, "hex");
      return sequence([integer(serial), time(validFrom)]);
    });
    const content = sequence([
      integer(Buffer.of(1)),
      algorithm,
      commonName(this.#name),
      time(validFrom),
      time(validTo),
      ...(entries.length > 0 ? [sequence(entries)] : []),
    ]);
    return this.#signed("X509 CRL", content, algorithm);
  }

  #sign({
    subject,
    publicKey,
    isAuthority,
    names = [],
    validFrom = new Date(Date.now() - DAY_MS),
    validTo = new Date(Date.now() + 3650 * DAY_MS),
    listAt,
    extensions: others = {},
  }: CertificateRequest & {
    readonly subject: string;
    readonly publicKey: KeyObject;
    readonly isAuthority: boolean;
  }): string {
    const alternatives = names.map(generalName);
    const extensions = [
      extension("2.5.29.19", sequence(isAuthority ? [der(0x01, Buffer.of(0xff))] : []), "critical"),
      ...(alternatives.length > 0 ? [extension("2.5.29.17", sequence(alternatives))] : []),
      ...(listAt === undefined ? [] : [extension("2.5.29.31", listPoint(listAt))]),
      ...Object.entries(others).map(([id, value]) => extension(id, value)),
    ];
    const algorithm = sequence([oid("1.2.840.10045.4.3.2")]);
    const content = sequence([
      der(0xa0, integer(Buffer.of(2))),
      integer(Buffer.concat([Buffer.of(1), randomBytes(8)])),
      algorithm,
      commonName(this.#name),
      sequence([time(validFrom), time(validTo)]),
      commonName(subject),
      publicKey.export({ type: "spki", format: "der" }),
      der(0xa3, sequence(extensions)),
    ]);
    return this.#signed("CERTIFICATE", content, algorithm);
  }

  #signed(kind: string, content: Buffer, algorithm: Buffer): string {
    const signature = sign("sha256", content, this.#key);
    const whole = sequence([content, algorithm, der(0x03, Buffer.concat([Buffer.of(0), signature]))]);
    const lines = whole.toString("base64").replace(/.{64}(?=.)/g, "$&\n");
    return `-----BEGIN ${kind}-----\n${lines}\n-----END ${kind}-----\n`;
  }
}

/** A folder with files of certificates. */
export interface CertificateFolder {
  readonly path: (name: string) => string;
  /** Writes a file and returns its path. */
  write(name: string, text: string): string;
  /** Writes `NAME.pem` and `NAME.key`, and returns them as settings. */
  writePair(name: string, pair: TestCertificate): { readonly cert_file: string; readonly key_file: string };
  remove(): void;
}

/** Creates a temporary folder. */
export function makeCertificateFolder(): CertificateFolder {
  const folder = mkdtempSync(join(tmpdir(), "parley-tls-"));
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  return {
    path: (name) => join(folder, name),
    write,
    writePair: (name, { cert, key }) => ({
      cert_file: write(`${name}.pem`, cert),
      key_file: write(`${name}.key`, key),
    }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  const size = Buffer.alloc(2);
  size.writeUInt16BE(length);
  return Buffer.concat([Buffer.of(tag, 0x82), size, content]);
}

const sequence = (parts: readonly Buffer[]): Buffer => der(0x30, Buffer.concat(parts));

const integer = (bytes: Buffer): Buffer => der(0x02, bytes);

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = rest.flatMap((number) => {
    const digits = [number & 0x7f];
    for (let left = number >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f));
    return digits;
  });
  return der(0x06, Buffer.of(first * 40 + second, ...bytes));
}

function commonName(name: string): Buffer {
  return sequence([der(0x31, sequence([oid("2.5.4.3"), der(0x0c, Buffer.from(name))]))]);
}

/** GeneralizedTime. */
function time(date: Date): Buffer {
  return der(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\..*/g, "")}Z`));
}

function extension(id: string, value: Buffer, critical?: "critical"): Buffer {
  const flag = critical === undefined ? [] : [der(0x01, Buffer.of(0xff))];
  return sequence([oid(id), ...flag, der(0x04, value)]);
}

function listPoint(address: string): Buffer {
  const names = der(0xa0, generalName(`URI:${address}`));
  return sequence([sequence([der(0xa0, names)])]);
}

function generalName(text: string): Buffer {
  const at = text.indexOf(":");
  const [kind, value] = [text.slice(0, at), text.slice(at + 1)];
  if (kind === "DNS") return der(0x82, Buffer.from(value));
  if (kind === "URI") return der(0x86, Buffer.from(value));
  return der(0x87, Buffer.from(value.split(".").map(Number)));
}

import { verify, type X509Certificate } from "node:crypto";
import { type DerValue, readDer, readDerTime, TAG } from "./der.ts";

/** Longest file of lists, in bytes: some 20,000 revoked certificates. It is read every two seconds. */
const MAX_LISTS_BYTES = 1024 * 1024;

/** Key of a certificate in revocation lists: the issuer's name (DER) and the serial number, both in hexadecimal. */
export interface CertificateIdentity {
  readonly issuer: string;
  readonly serial: string;
}

/** An authority whose certificates are accepted, and the file that contains it. */
interface Authority {
  readonly certificate: X509Certificate;
  readonly file: string | undefined;
}

/** The error of a list that is not valid yet. */
export class NotYetValid extends Error {
  readonly fromMs: number;

  constructor(message: string, fromMs: number) {
    super(message);
    this.fromMs = fromMs;
  }
}

/** One list of revoked certificates (RFC 5280, 5). */
interface List {
  readonly issuer: string;
  readonly fromMs: number;
  /** `nextUpdate` in Unix milliseconds; Infinity for a list without it. */
  readonly expiresMs: number;
  readonly serials: ReadonlySet<string>;
  readonly signed: Buffer;
  readonly algorithm: string;
  readonly signature: Buffer;
}

/** The consequence of an invalid list, for messages: OpenSSL requires a valid list of each authority. */
const REFUSES = "new connections with certificates of its authority are refused";

const LIST = /-----BEGIN X509 CRL-----([^-]*)-----END X509 CRL-----/g;

/**
 * The revocation lists of a file, for the certificates of clients. OpenSSL verifies new connections with them, and requires a valid
 * list of each authority in the chain. This class checks what OpenSSL does not: open connections, resumed sessions, and whether a
 * new file can be used.
 */
export class RevocationLists {
  /** Each list in PEM. */
  readonly pems: string[];
  readonly #file: string | undefined;
  readonly #lists: readonly List[];

  /** Throws an Error for an operator when the file has no list, or one that cannot be read. */
  constructor(file: string | undefined, text: string) {
    this.#file = file;
    if (text.length > MAX_LISTS_BYTES) throw new Error(`${file} is longer than ${MAX_LISTS_BYTES} bytes`);
    const found = [...text.matchAll(LIST)];
    this.pems = found.map(([pem]) => `${pem}\n`);
    if (found.length === 0) throw new Error(`${file} has no revocation list in PEM (BEGIN X509 CRL)`);
    this.#lists = found.map(([, base64 = ""]) => {
      try {
        return readList(Buffer.from(base64, "base64"));
      } catch (error) {
        throw new Error(`${file} has a revocation list that cannot be read`, { cause: error });
      }
    });
  }

  /** Throws an Error when an authority has no list that it has signed: OpenSSL would refuse all its clients. */
  requireSignedBy(authorities: readonly Authority[]): void {
    for (const { certificate, file } of authorities) {
      const name = oneLine(certificate.subject);
      const lists = this.#lists.filter(({ issuer }) => issuer === subjectOf(certificate));
      if (lists.length === 0)
        throw new Error(`${this.#file} has no revocation list of ${name}; each authority in ${file} needs one`);
      // Several authorities may have the same name with different keys; one of them must have signed the list.
      const namesakes = authorities.filter((other) => subjectOf(other.certificate) === subjectOf(certificate));
      for (const list of lists)
        if (!namesakes.some((other) => mayHaveSigned(other.certificate, list)))
          throw new Error(`${this.#file}: the revocation list of ${name} is not signed with its key in ${file}`);
    }
  }

  /** Throws an Error for an expired list, NotYetValid for a list that is not valid yet. */
  requireValid(nowMs: number): void {
    const end = this.#describeEnd(nowMs);
    if (end !== undefined) throw new Error(end);
    if (this.#fromMs > nowMs) throw new NotYetValid(this.#describeBeginning(), this.#fromMs);
  }

  /** The earliest expiry of the lists; undefined when none expires. */
  get expires(): Date | undefined {
    const ms = Math.min(...this.#lists.map(({ expiresMs }) => expiresMs));
    return ms === Infinity ? undefined : new Date(ms);
  }

  /** Why a list in use is not valid, with the consequence, for an operator; undefined while all are valid. */
  describeProblem(nowMs: number): string | undefined {
    const end = this.#describeEnd(nowMs);
    if (end !== undefined) return `${end}: ${REFUSES}`;
    return this.#fromMs > nowMs ? `${this.#describeBeginning()}; until then ${REFUSES}` : undefined;
  }

  #describeEnd(nowMs: number): string | undefined {
    const { expires } = this;
    if (expires === undefined || expires.getTime() > nowMs) return undefined;
    return `a revocation list in ${this.#file} has expired on ${expires.toISOString()}; put a new one in its place`;
  }

  /** Time from which all lists are valid. */
  get #fromMs(): number {
    return Math.max(...this.#lists.map(({ fromMs }) => fromMs));
  }

  #describeBeginning(): string {
    return `a revocation list in ${this.#file} is valid from ${iso(this.#fromMs)} on`;
  }

  /** Whether a certificate is revoked. */
  revokes({ issuer, serial }: CertificateIdentity): boolean {
    return this.#lists.some((list) => list.issuer === issuer && list.serials.has(serial));
  }

  /** Whether no list of a certificate's authority is valid. */
  hasExpiredFor({ issuer }: CertificateIdentity, nowMs: number): boolean {
    return !this.#lists.some((list) => list.issuer === issuer && list.expiresMs > nowMs);
  }
}

/** The identities of a certificate and of the intermediate ones that the client sent with it, without the authority's own. */
export function identitiesOf(leaf: X509Certificate): CertificateIdentity[] {
  const identities: CertificateIdentity[] = [];
  for (let one: X509Certificate | undefined = leaf; one !== undefined; one = one.issuerCertificate) {
    const { issuer, subject, serial } = namesOf(one);
    if (issuer !== subject || one === leaf) identities.push({ issuer, serial });
  }
  return identities;
}

function subjectOf(certificate: X509Certificate): string {
  return namesOf(certificate).subject;
}

/** Certificate: SEQUENCE { content SEQUENCE { version [0], serial, algorithm, issuer, validity, subject, … }, … }. */
function namesOf({ raw }: X509Certificate): {
  readonly issuer: string;
  readonly subject: string;
  readonly serial: string;
} {
  const [whole] = readDer(raw);
  const [content] = readDer(whole!.content);
  const fields = readDer(content!.content);
  const [serial, , issuer, , subject] = fields[0]?.tag === TAG.version ? fields.slice(1) : fields;
  return { issuer: hex(issuer!.whole), subject: hex(subject!.whole), serial: hex(serial!.content) };
}

/**
 * CertificateList: SEQUENCE { content SEQUENCE { version?, algorithm, issuer, thisUpdate, nextUpdate?, revoked?, extensions? },
 * algorithm, signature }.
 */
function readList(der: Buffer): List {
  const [whole] = readDer(der);
  const [content, algorithm, signature] = readDer(whole!.content);
  const fields = readDer(content!.content);
  const [, issuer, from, ...rest] = fields[0]?.tag === TAG.integer ? fields.slice(1) : fields;
  const fromMs = readDerTime(from);
  if (issuer?.tag !== TAG.sequence || fromMs === undefined) throw new Error("issuer or time is missing");
  const expiresMs = readDerTime(rest[0]);
  const revoked = expiresMs === undefined ? rest[0] : rest[1];
  return {
    issuer: hex(issuer.whole),
    fromMs,
    expiresMs: expiresMs ?? Infinity,
    serials: new Set(revoked?.tag === TAG.sequence ? readDer(revoked.content).map(serialIn) : []),
    signed: content!.whole,
    algorithm: hex(readDer(algorithm!.content)[0]!.content),
    // The content of a BIT STRING begins with the number of unused bits.
    signature: signature!.content.subarray(1),
  };
}

function serialIn(entry: DerValue): string {
  return hex(readDer(entry.content)[0]!.content);
}

/** Digests of signature algorithms by OID in hexadecimal (RFC 8017, 5758, 8410); null: the algorithm has no separate digest. */
const DIGESTS: ReadonlyMap<string, string | null> = new Map([
  ["2a864886f70d01010b", "sha256"],
  ["2a864886f70d01010c", "sha384"],
  ["2a864886f70d01010d", "sha512"],
  ["2a8648ce3d040302", "sha256"],
  ["2a8648ce3d040303", "sha384"],
  ["2a8648ce3d040304", "sha512"],
  ["2b6570", null],
  ["2b6571", null],
]);

/** Whether an authority's key has signed a list. Also true for an algorithm that is not in DIGESTS: OpenSSL verifies the list again. */
function mayHaveSigned({ publicKey }: X509Certificate, { signed, algorithm, signature }: List): boolean {
  const digest = DIGESTS.get(algorithm);
  if (digest === undefined) return true;
  try {
    return verify(digest, signed, publicKey, signature);
  } catch {
    // The key is of another kind than the signature.
    return false;
  }
}

function hex(bytes: Buffer): string {
  return bytes.toString("hex");
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Joins Node's text of a distinguished name, which has a line for each part. */
function oneLine(name: string): string {
  return name.replaceAll("\n", ", ");
}

import { createPrivateKey, hash, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { NotYetValid, RevocationLists } from "./revocation-lists.ts";

/** Files in PEM for one end of TLS connections. */
export interface TlsFiles {
  /** The own certificate, followed by those of intermediate authorities. */
  readonly certFile?: string | undefined;
  /** Its private key, without a passphrase. */
  readonly keyFile?: string | undefined;
  /** Authorities whose certificates are accepted from the other end. */
  readonly caFile?: string | undefined;
  /** Revocation lists of these authorities, one per authority. Default: revocation is not checked. */
  readonly crlFile?: string | undefined;
}

/** Contents of the files, as `node:tls` takes them. */
export interface TlsMaterial {
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
  readonly crl?: string[];
}

/** Receives the results of reading changed files. Texts are for an operator and contain no secret. */
export interface TlsFilesReport {
  /** The files are in use. `expires`: expiry of the own certificate; `listsExpire`: expiry of the revocation lists, if any. */
  loaded(facts: { readonly expires: string | undefined; readonly listsExpire?: string | undefined }): void;
  /** Changed files cannot be used; the earlier contents stay in use. */
  refused(problem: string): void;
  /** A file in use has expired, or has a revocation list that is not valid yet. */
  expired(problem: string): void;
}

export interface WatchOptions extends TlsFilesReport {
  /** Interval of the checks in milliseconds. Default: 2,000. */
  readonly everyMs?: number;
}

const LOOK_MS = 2_000;

/**
 * The files of one end of TLS connections, read again when they change. They are read at intervals, not watched: that also works
 * for symbolic links that are exchanged, as in Kubernetes' secrets, and on network file systems.
 */
export class WatchedTlsFiles {
  readonly #files: TlsFiles;
  readonly #report: TlsFilesReport;
  readonly #timer: NodeJS.Timeout;
  readonly #listeners = new Set<(material: TlsMaterial, before: TlsMaterial) => void>();
  #checked: CheckedMaterial;
  /** Digests: of the contents in use, of the contents refused last, and of changed contents at the last check. */
  #used: string;
  #refused: string | undefined;
  #seen: string | undefined;
  /** Time at which refused contents become valid. */
  #validFromMs = Infinity;
  #toldInvalid: string | undefined;
  #looking: Promise<void> = Promise.resolve();

  private constructor(
    files: TlsFiles,
    { found, checked }: { readonly found: FoundFiles; readonly checked: CheckedMaterial },
    { everyMs = LOOK_MS, ...report }: WatchOptions,
  ) {
    this.#files = files;
    this.#report = report;
    this.#checked = checked;
    this.#used = digestOf(found);
    this.#timer = setInterval(() => void this.#look("when unchanged twice"), everyMs).unref();
  }

  /** Reads the files. Rejects with a message for an operator when they cannot be used. */
  static async open(files: TlsFiles, options: WatchOptions): Promise<WatchedTlsFiles> {
    const found = await readAll(files);
    const checked = checkFiles(files, found);
    const watched = new WatchedTlsFiles(files, { found, checked }, options);
    watched.#tellLoaded();
    if (isOver(checked.expires)) options.expired(expired(files, checked.expires));
    watched.#tellInvalidLists();
    return watched;
  }

  /** The contents in use. */
  get material(): TlsMaterial {
    return this.#checked.material;
  }

  /** The revocation lists in use; undefined without `crlFile`. */
  get lists(): RevocationLists | undefined {
    return this.#checked.lists;
  }

  /** Calls the listener with changed contents that can be used, and the earlier ones, until the returned function is called. */
  onChange(listener: (material: TlsMaterial, before: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reads the files now, and uses changed contents at once. Never rejects. */
  check(): Promise<void> {
    return this.#look("at once");
  }

  /** Ends the checks. */
  close(): void {
    clearInterval(this.#timer);
  }

  #look(uses: "at once" | "when unchanged twice"): Promise<void> {
    // Reads run one after the other, so that none applies older contents after newer ones.
    this.#looking = this.#lookAfter(this.#looking, uses);
    return this.#looking;
  }

  /** Reads the files, after the earlier read. "when unchanged twice" avoids reading a new certificate together with its old key. */
  async #lookAfter(earlier: Promise<void>, uses: "at once" | "when unchanged twice"): Promise<void> {
    await earlier;
    const found = await readAll(this.#files).catch((error: unknown) => error as Error);
    const digest = digestOf(found);
    if (Date.now() >= this.#validFromMs) this.#refused = undefined;
    const isNews = digest !== this.#used && digest !== this.#refused;
    const isStill = digest === this.#seen;
    this.#seen = isNews ? digest : undefined;
    if (digest === this.#used) this.#refused = undefined;
    if (isNews && (isStill || uses === "at once")) this.#apply(found, digest);
    this.#tellInvalidLists();
  }

  #apply(found: FoundFiles | Error, digest: string): void {
    this.#validFromMs = Infinity;
    try {
      if (found instanceof Error) throw found;
      const checked = checkFiles(this.#files, found);
      if (isOver(checked.expires)) throw new Error(expired(this.#files, checked.expires));
      const before = this.material;
      // A list that has expired must not keep a new certificate from being used.
      if (String(checked.material.crl) !== String(before.crl)) checked.lists?.requireValid(Date.now());
      this.#checked = checked;
      this.#used = digest;
      for (const listener of this.#listeners) listener(checked.material, before);
      this.#tellLoaded();
    } catch (error) {
      this.#refused = digest;
      if (error instanceof NotYetValid) this.#validFromMs = error.fromMs;
      this.#report.refused(error instanceof Error ? error.message : String(error));
    }
  }

  #tellLoaded(): void {
    const { expires, lists } = this.#checked;
    const listsExpire = lists?.expires?.toISOString();
    this.#report.loaded({ expires: expires?.toISOString(), ...(listsExpire !== undefined && { listsExpire }) });
  }

  /** Reports once that a revocation list in use has expired, or is not valid yet. */
  #tellInvalidLists(): void {
    const problem = this.lists?.describeProblem(Date.now());
    if (problem !== undefined && problem !== this.#toldInvalid) this.#report.expired(problem);
    this.#toldInvalid = problem;
  }
}

/** Texts of the files. */
type FoundFiles = Readonly<Partial<Record<"cert" | "key" | "ca" | "crl", string>>>;

/** Contents that can be used. */
interface CheckedMaterial {
  readonly material: TlsMaterial;
  /** End of the own certificate; undefined without one. */
  readonly expires: Date | undefined;
  readonly lists: RevocationLists | undefined;
}

function isOver(end: Date | undefined): end is Date {
  return end !== undefined && end.getTime() < Date.now();
}

function digestOf(found: FoundFiles | Error): string {
  return hash("sha256", found instanceof Error ? found.message : JSON.stringify(found));
}

async function readAll({ certFile, keyFile, caFile, crlFile }: TlsFiles): Promise<FoundFiles> {
  // One after the other, so that the error names the first file that cannot be read.
  const found: Record<string, string> = {};
  for (const [name, file] of Object.entries({ cert: certFile, key: keyFile, ca: caFile, crl: crlFile }))
    if (file !== undefined) found[name] = await read(file);
  return found;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "this user may not read it",
  EISDIR: "it is a directory",
};

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "latin1");
  } catch (error) {
    const { code = "unknown reason" } = error as NodeJS.ErrnoException;
    throw new Error(`${file} cannot be read: ${REASONS[code] ?? code}`, { cause: error });
  }
}

/** Throws an Error that names the file and the problem. */
function checkFiles(files: TlsFiles, { crl, ...found }: FoundFiles): CheckedMaterial {
  const { certFile, keyFile, caFile, crlFile } = files;
  const { cert, key, ca } = found;
  const own = cert === undefined ? undefined : parse(certFile, cert);
  if (key !== undefined && own?.checkPrivateKey(parseKey(keyFile, key)) === false)
    throw new Error(`the private key in ${keyFile} does not belong to the certificate in ${certFile}`);
  const authorities = (ca === undefined ? [] : (ca.match(CERTIFICATES) ?? [""])).map((one) => parse(caFile, one));
  const lists = crl === undefined ? undefined : new RevocationLists(crlFile, crl);
  lists?.requireSignedBy(authorities.map((certificate) => ({ certificate, file: caFile })));
  try {
    createSecureContext({ ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) });
  } catch (error) {
    const { reason, message } = error as { readonly reason?: string; readonly message: string };
    throw new Error(`the certificate in ${certFile} cannot be used: ${reason ?? message}`, { cause: error });
  }
  try {
    if (lists !== undefined) createSecureContext({ crl: lists.pems });
  } catch (error) {
    throw new Error(`${crlFile} has a revocation list that cannot be read`, { cause: error });
  }
  const material = { ...found, ...(lists !== undefined && { crl: lists.pems }) };
  return { material, expires: own && new Date(own.validTo), lists };
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function parse(file: string | undefined, text: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch (error) {
    throw new Error(`${file} has no readable certificate in PEM`, { cause: error });
  }
}

function parseKey(file: string | undefined, text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw new Error(`${file} has no private key in PEM that is readable without a passphrase`, { cause: error });
  }
}

function expired({ certFile }: TlsFiles, at: Date): string {
  return `the certificate in ${certFile} has expired on ${at.toISOString()}; put a new one in its place`;
}

import type { Socket } from "node:net";
import { LimitedConnection } from "./limited-connection.ts";

/** A server that takes e-mail. */
export interface SmtpSettings {
  readonly host: string;
  readonly port: number;
  /** `tls`: from the first byte; `starttls`: required before anything else; `none`: unencrypted. */
  readonly security: "tls" | "starttls" | "none";
  readonly user: string | undefined;
  /** A secret. */
  readonly password: string | undefined;
  /** Sender, such as `Parley <parley@example.com>`. */
  readonly from: string;
  /** PEM file of the authorities of its certificate; undefined: those of Node. */
  readonly caFile: string | undefined;
}

export interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  /** The same for all attempts to send a message, so that receivers can recognize a repetition. */
  readonly id: string;
}

/** A failure of an e-mail with a text for people. */
export class MailError extends Error {
  override readonly name = "MailError";
  /** Whether the server has refused it for good. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean, cause: unknown) {
    super(message, { cause });
    this.isFinal = isFinal;
  }
}

const CONNECT_MS = 10_000;
/** Longest time of one e-mail. */
const LIMIT_MS = 30_000;
/**
 * Bytes that a server may send for one e-mail, with its certificates. The library limits each answer, but not the lines that it skips,
 * and takes a time for them that grows with the square of their number.
 */
const MAX_BYTES = 64 * 1024;

/** Sends an e-mail. Rejects with a MailError, after `limitMs` at the latest. Nothing is left of the connection then. */
export async function sendMail(
  smtp: SmtpSettings,
  { to, subject, text, id }: Mail,
  limitMs: number = LIMIT_MS,
): Promise<void> {
  // Imported on demand: many have no server for e-mail.
  const [{ createTransport }, { readFile }] = await Promise.all([import("nodemailer"), import("node:fs/promises")]);
  const { host, port, security, user, password, from, caFile } = smtp;
  const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8");
  let connection: LimitedConnection | undefined;
  const transport = createTransport({
    host,
    port,
    getSocket(_, done) {
      connection = new LimitedConnection({ host, port, maxBytes: MAX_BYTES });
      // The library uses what it has of a socket.
      done(null, { connection: connection as unknown as Socket });
    },
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    ...(ca !== undefined && { tls: { ca } }),
    ...(user !== undefined && { auth: { user, pass: password ?? "" } }),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const ending = new AbortController();
  const timeout = setTimeout(() => ending.abort(), limitMs);
  try {
    await transport.sendMail({
      from,
      to: [...to],
      subject,
      text,
      messageId: `<${id}@parley>`,
      headers: { "auto-submitted": "auto-generated" },
      signal: ending.signal,
    });
  } catch (error) {
    connection?.destroy();
    const { responseCode, code, message } = error as { responseCode?: number; code?: string; message: string };
    const isFinal = responseCode !== undefined && responseCode >= 500;
    let why = code ?? message;
    if (ending.signal.aborted) why = `no answer in ${limitMs / 1000} s`;
    if (connection?.isFull === true) why = `it sends more than ${MAX_BYTES / 1024} KiB`;
    throw new MailError(`The server for e-mail: ${why}${isFinal ? ` (${responseCode})` : ""}.`, isFinal, error);
  } finally {
    clearTimeout(timeout);
    transport.close();
  }
}

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

/** Sends an e-mail. Rejects with a MailError. */
export async function sendMail(smtp: SmtpSettings, { to, subject, text, id }: Mail): Promise<void> {
  // Imported on demand: many have no server for e-mail.
  const [{ createTransport }, { readFile }] = await Promise.all([import("nodemailer"), import("node:fs/promises")]);
  const { host, port, security, user, password, from, caFile } = smtp;
  const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8");
  const transport = createTransport({
    host,
    port,
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    ...(ca !== undefined && { tls: { ca } }),
    ...(user !== undefined && { auth: { user, pass: password ?? "" } }),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: LIMIT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const timer = Promise.withResolvers<never>();
  const timeout = setTimeout(() => timer.reject(new Error(`no answer in ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  try {
    const sending = transport.sendMail({
      from,
      to: [...to],
      subject,
      text,
      messageId: `<${id}@parley>`,
      headers: { "auto-submitted": "auto-generated" },
    });
    await Promise.race([sending, timer.promise]);
  } catch (error) {
    const { responseCode, code, message } = error as { responseCode?: number; code?: string; message: string };
    const isFinal = responseCode !== undefined && responseCode >= 500;
    throw new MailError(
      `The server for e-mail: ${code ?? message}${isFinal ? ` (${responseCode})` : ""}.`,
      isFinal,
      error,
    );
  } finally {
    clearTimeout(timeout);
    transport.close();
  }
}

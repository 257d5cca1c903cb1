import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { onTestFinished } from "vitest";
import type { SmtpSettings } from "../../src/alerts/mail.ts";

/** An e-mail as a server has received it. */
export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  /** With its headers, encoded as it was sent. */
  readonly text: string;
}

/** Starts a server for e-mail, which knows one user, for the running test. */
export async function startMailServer(
  options: SMTPServerOptions = {},
): Promise<{ readonly mails: Mail[]; readonly smtp: SmtpSettings }> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onAuth: ({ username, password }, _, done) =>
      username === "parley" && password === "secret of the server"
        ? done(null, { user: username })
        : done(new Error("Wrong password")),
    onData(stream, { envelope }, done) {
      let text = "";
      stream.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = envelope;
        mails.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text,
        });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => undefined);
  const { promise, resolve } = Promise.withResolvers<number>();
  const listening = server.listen(0, "127.0.0.1", () => resolve((listening.address() as AddressInfo).port));
  const port = await promise;
  onTestFinished(() => server.close());
  const smtp: SmtpSettings = {
    host: "127.0.0.1",
    port,
    security: "none",
    user: undefined,
    password: undefined,
    from: "Parley <parley@example.com>",
    caFile: undefined,
  };
  return { mails, smtp };
}

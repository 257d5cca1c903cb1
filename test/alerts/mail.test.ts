import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { sendMail, type SmtpSettings } from "../../src/alerts/mail.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { startMailServer } from "../support/mail-server.ts";

const MAIL = { to: ["bob@example.com"], subject: "Test", text: "A text.\n", id: "1" };

/** Starts a server that treats each connection as `serve` does. */
async function startHostile(serve: (socket: Socket) => void): Promise<{
  readonly smtp: SmtpSettings;
  readonly closed: () => boolean;
}> {
  let isClosed = false;
  const server = createServer((socket) => {
    socket.on("error", () => undefined).on("close", () => (isClosed = true));
    socket.resume();
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const smtp: SmtpSettings = {
    host: "127.0.0.1",
    port,
    security: "none",
    user: undefined,
    password: undefined,
    from: "parley@example.com",
    caFile: undefined,
  };
  return { smtp, closed: () => isClosed };
}

describe("a server for e-mail", () => {
  it.each(["tls", "starttls"] as const)(
    "takes e-mail over %s with a certificate of its authority",
    async (security) => {
      const folder = makeCertificateFolder();
      const authority = new CertificateAuthority();
      const { cert, key } = authority.issue({ names: LOCAL_NAMES });
      onTestFinished(() => folder.remove());
      const caFile = folder.write("ca.pem", authority.cert);
      const { mails, smtp } = await startMailServer({ secure: security === "tls", disabledCommands: [], cert, key });
      await sendMail({ ...smtp, security, caFile, user: "parley", password: "secret of the server" }, MAIL);
      expect(mails.map(({ to }) => to)).toEqual([["bob@example.com"]]);
      await expect(sendMail({ ...smtp, security }, MAIL)).rejects.toThrow(/The server for e-mail: (ESOCKET|ETLS)/);
    },
  );

  it("that sends lines without an end is disconnected at once", async () => {
    const lines = Buffer.from("\r\n".repeat(32 * 1024));
    let written = 0;
    const { smtp, closed } = await startHostile((socket) => {
      const flood = (): void => {
        while (!socket.destroyed && socket.write(lines)) written += lines.length;
      };
      socket.on("drain", flood);
      flood();
    });
    const began = performance.now();
    await expect(sendMail(smtp, MAIL)).rejects.toThrow("The server for e-mail: it sends more than 64 KiB.");
    await expect.poll(closed).toBe(true);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  it("that answers a byte at a time has no connection after the time limit", async () => {
    const { smtp, closed } = await startHostile((socket) => {
      const timer = setInterval(() => socket.write("2"), 20);
      socket.on("close", () => clearInterval(timer));
    });
    await expect(sendMail(smtp, MAIL, 300)).rejects.toThrow("The server for e-mail: no answer in 0.3 s.");
    await vi.waitFor(() => expect(closed()).toBe(true), 2_000);
  });
});

import { mkdirSync, symlinkSync, unlinkSync } from "node:fs";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type TlsFiles, WatchedTlsFiles } from "../../src/net/tls-files.ts";
import { CertificateAuthority, makeCertificateFolder } from "../support/certificates.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

const [one, other] = [authority.issue(), authority.issue()];
const expired = authority.issue({ validTo: new Date(Date.now() - 1000) });
const files = (name: string): TlsFiles => ({
  certFile: folder.path(`${name}.pem`),
  keyFile: folder.path(`${name}.key`),
});

/** Opens files that are checked every ten milliseconds, or only when asked. */
async function open(given: TlsFiles, everyMs = 3_600_000) {
  const [loaded, refused] = [vi.fn<(facts: object) => void>(), vi.fn<(problem: string) => void>()];
  const watched = await WatchedTlsFiles.open(given, { everyMs, loaded, refused });
  onTestFinished(() => watched.close());
  return { watched, loaded, refused };
}

describe("TLS files at the start", () => {
  folder.writePair("one", one);
  folder.write("text.pem", "no certificate");
  folder.write("other.key", other.key);
  mkdirSync(folder.path("folder"));

  it.each<[string, TlsFiles, RegExp]>([
    ["a missing one", files("missing"), /missing\.pem cannot be read: there is no such file$/],
    ["a directory", { ...files("one"), certFile: folder.path("folder") }, /folder cannot be read: it is a directory$/],
    ["a text", { ...files("one"), certFile: folder.path("text.pem") }, /text\.pem has no readable certificate in PEM$/],
    [
      "a key that is none",
      { ...files("one"), keyFile: folder.path("text.pem") },
      /text\.pem has no private key in PEM/,
    ],
    [
      "another certificate's key",
      { ...files("one"), keyFile: folder.path("other.key") },
      /the private key in .*other\.key does not belong to the certificate in .*one\.pem$/,
    ],
    ["authorities that are none", { ...files("one"), caFile: folder.path("text.pem") }, /text\.pem has no readable/],
  ])("are refused for %s, by its name", async (_, given, problem) => {
    await expect(open(given)).rejects.toThrow(problem);
  });

  it("are used when the certificate has expired, which is told", async () => {
    folder.writePair("late", expired);
    const { refused } = await open(files("late"));
    expect(refused).toHaveBeenCalledWith(expect.stringMatching(/late\.pem has expired on 20.*; put a new one/));
  });
});

describe("changed TLS files", () => {
  it("are used by themselves, once both are there", async () => {
    folder.writePair("changing", one);
    const { watched, refused } = await open(files("changing"), 10);
    folder.writePair("changing", other);
    await vi.waitFor(() => expect(watched.material).toEqual(other), { timeout: 5000, interval: 5 });
    expect(refused).not.toHaveBeenCalled();
  });

  it("are found behind a symbolic link that is exchanged", async () => {
    folder.writePair("first", one);
    folder.writePair("second", other);
    for (const kind of ["pem", "key"]) symlinkSync(`first.${kind}`, folder.path(`link.${kind}`));
    const { watched } = await open(files("link"));
    for (const kind of ["pem", "key"]) {
      unlinkSync(folder.path(`link.${kind}`));
      symlinkSync(`second.${kind}`, folder.path(`link.${kind}`));
    }
    await watched.check();
    expect(watched.material).toEqual(other);
  });

  it.each([
    ["broken", { cert: "no certificate", key: other.key }, /no readable certificate/],
    ["half of a pair", { ...one, cert: other.cert }, /does not belong/],
    ["expired", expired, /has expired/],
  ])("that are %s are told once, and those from before stay", async (name, pair, problem) => {
    folder.writePair(name, one);
    const { watched, refused } = await open(files(name));
    folder.writePair(name, pair);
    await watched.check();
    await watched.check();
    expect(refused.mock.calls).toEqual([[expect.stringMatching(problem)]]);
    expect(watched.material).toEqual(one);
    folder.writePair(name, other);
    await watched.check();
    expect(watched.material).toEqual(other);
  });
});

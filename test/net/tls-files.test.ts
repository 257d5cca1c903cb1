import { mkdirSync, symlinkSync, unlinkSync } from "node:fs";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type TlsFiles, WatchedTlsFiles } from "../../src/net/tls-files.ts";
import { CertificateAuthority, makeCertificateFolder } from "../support/certificates.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

const [one, other] = [authority.issue(), authority.issue()];
const late = authority.issue({ validTo: new Date(Date.now() - 1000) });
const files = (name: string): TlsFiles => ({
  certFile: folder.path(`${name}.pem`),
  keyFile: folder.path(`${name}.key`),
});

/** Opens files that are checked every ten milliseconds, or only when asked. */
async function open(given: TlsFiles, everyMs = 3_600_000) {
  const loaded = vi.fn<(facts: object) => void>();
  const [refused, expired] = [vi.fn<(problem: string) => void>(), vi.fn<(problem: string) => void>()];
  const watched = await WatchedTlsFiles.open(given, { everyMs, loaded, refused, expired });
  onTestFinished(() => watched.close());
  return { watched, loaded, refused, expired };
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

  it("are used when the certificate has expired, which is reported", async () => {
    folder.writePair("late", late);
    const told = await open(files("late"));
    expect(told.expired).toHaveBeenCalledWith(expect.stringMatching(/late\.pem has expired on 20.*; put a new one/));
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
    ["expired", late, /has expired/],
  ])("that are %s are reported once, and those from before stay", async (name, pair, problem) => {
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

describe("revocation lists", () => {
  const foreign = new CertificateAuthority("foreign");
  const namesake = new CertificateAuthority();
  const inPast = new Date(Date.now() - 1000);

  /** Files with a list. */
  function withList(name: string, list: string, authorities = authority.cert): TlsFiles {
    folder.writePair(name, one);
    const caFile = folder.write(`${name}-ca.pem`, authorities);
    return { ...files(name), caFile, crlFile: folder.write(`${name}.crl`, list) };
  }

  it.each([
    ["that are none", "no list", /none\.crl has no revocation list in PEM/],
    ["that cannot be read", "-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----", /cannot be read$/],
    [
      "of another authority",
      foreign.list(),
      /has no revocation list of CN=test authority; each authority in .*ca\.pem/,
    ],
    [
      "that another key has signed",
      namesake.list(),
      /list of CN=test authority is not signed with its key in .*ca\.pem/,
    ],
    ["that are too long", " ".repeat(1024 * 1024 + 1), /is longer than 1048576 bytes/],
  ])("are refused at the start: files %s", async (_, list, problem) => {
    await expect(open(withList("none", list))).rejects.toThrow(problem);
  });

  it("are refused at the start when one of two authorities has none", async () => {
    const both = authority.cert + foreign.cert;
    await expect(open(withList("two", authority.list(), both))).rejects.toThrow(/no revocation list of CN=foreign/);
    const { loaded } = await open(withList("two", authority.list() + foreign.list(), both));
    expect(loaded).toHaveBeenCalledWith(expect.objectContaining({ listsExpire: expect.stringMatching(/^20/) }));
  });

  it("are reported when they have expired, at the start and later, once", async () => {
    const early = await open(withList("over", authority.list({ validTo: inPast })));
    expect(early.expired).toHaveBeenCalledWith(expect.stringMatching(/over\.crl has expired on 20.*are refused$/));
    const later = await open(withList("soon", authority.list({ validTo: new Date(Date.now() + 60_000) })));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    onTestFinished(() => void vi.useRealTimers());
    await later.watched.check();
    await later.watched.check();
    expect(later.expired).toHaveBeenCalledOnce();
  });

  it("are reported when they are from the future, at the start, and no longer when their time has come", async () => {
    const list = authority.list({ validFrom: new Date(Date.now() + 60_000), validTo: new Date(Date.now() + 600_000) });
    const { watched, expired } = await open(withList("early", list));
    expect(expired.mock.calls).toEqual([
      [expect.stringMatching(/early\.crl is valid from 20.* on; until then .* refused$/)],
    ]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    onTestFinished(() => void vi.useRealTimers());
    await watched.check();
    expect(expired).toHaveBeenCalledOnce();
    expect(watched.lists?.describeProblem(Date.now())).toBeUndefined();
  });

  it.each([
    ["that have expired", authority.list({ validTo: inPast }), /has expired on/],
    ["that another key has signed", namesake.list(), /is not signed/],
    ["that are none", "", /has no revocation list/],
  ])("stay when new ones come %s", async (_, list, problem) => {
    const given = withList("kept", authority.list());
    const { watched, refused } = await open(given);
    const { crl } = watched.material;
    folder.write("kept.crl", list);
    await watched.check();
    expect(refused.mock.calls).toEqual([[expect.stringMatching(problem)]]);
    expect(watched.material.crl).toEqual(crl);
  });

  it("that have expired keep no new certificate from being used", async () => {
    const { watched, refused } = await open(withList("stale", authority.list({ validTo: inPast })));
    folder.writePair("stale", other);
    await watched.check();
    expect(refused).not.toHaveBeenCalled();
    expect(watched.material).toMatchObject(other);
  });

  it("from the future are used when their time has come", async () => {
    const given = withList("future", authority.list());
    const { watched, refused } = await open(given);
    const next = authority.list({ validFrom: new Date(Date.now() + 60_000), validTo: new Date(Date.now() + 600_000) });
    folder.write("future.crl", next);
    await watched.check();
    expect(refused.mock.calls).toEqual([[expect.stringMatching(/future\.crl is valid from 20.* on$/)]]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    onTestFinished(() => void vi.useRealTimers());
    await watched.check();
    expect(watched.material.crl).toEqual([next]);
  });
});

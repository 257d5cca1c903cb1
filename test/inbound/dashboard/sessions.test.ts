import { once } from "node:events";
import { type IncomingMessage, request as sendRequest } from "node:http";
import { connect } from "node:net";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { describeBrowser } from "../../../src/inbound/dashboard/session-service.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { errorOf } from "./errors.ts";
import { type ConsoleUnderTest, startConsole } from "./set-up.ts";

let site: ConsoleUnderTest;
beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
});
afterEach(() => site.close());

const MINUTE_MS = 60_000;

/** Another browser that ada signs in with. */
async function signedInElsewhere() {
  const elsewhere = site.browser();
  await elsewhere.session.signIn({ email: "ada@example.com", password: PASSWORD });
  return elsewhere;
}

describe("one's own sessions", () => {
  it("are listed with where they began, the latest used first", async () => {
    const ada = await site.signedUp("ada");
    const startedMs = site.access.clock.now();
    await site.signedUp("bob");
    site.access.clock.advance(5 * MINUTE_MS);
    const elsewhere = await signedInElsewhere();
    const { sessions } = await ada.session.listSessions({});
    const begun = (each: (typeof sessions)[number]) => timestampMs(each.createTime!) - startedMs;
    const own = (listed: typeof sessions) => listed.filter(({ current }) => current).map(begun);
    expect(sessions.map(begun).toSorted((one, other) => one - other)).toEqual([0, 5 * MINUTE_MS]);
    expect(own(sessions)).toEqual([0]);
    expect(own((await elsewhere.session.listSessions({})).sessions)).toEqual([5 * MINUTE_MS]);
    expect(new Set(sessions.map(({ network }) => network))).toEqual(new Set(["127.0.0.0/24"]));
    expect(sessions.every(({ browser }) => browser !== "")).toBe(true);
  });

  it("are not listed once they have ended by themselves", async () => {
    const ada = await site.signedUp("ada");
    await signedInElsewhere();
    for (let passed = 0; passed < 3; passed += 1) {
      site.access.clock.advance(50 * MINUTE_MS);
      await ada.session.getSession({});
    }
    expect((await ada.session.listSessions({})).sessions).toHaveLength(1);
  });

  it("end everywhere else when that is asked for, and only those", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    const [one, two] = [await signedInElsewhere(), await signedInElsewhere()];
    // Long after the password was given: nothing is taken that a sign-in does not give back.
    site.access.clock.advance(30 * MINUTE_MS);
    expect((await ada.session.signOutElsewhere({})).ended).toBe(2);
    for (const gone of [one, two]) expect((await errorOf(gone.key.list({}))).code).toBe(Code.Unauthenticated);
    await ada.key.list({});
    await bob.key.list({});
    expect((await ada.session.listSessions({})).sessions).toHaveLength(1);
    expect((await ada.session.signOutElsewhere({})).ended).toBe(0);
    expect(site.access.logged.at(-2)).toMatchObject({
      action: "signed_out_elsewhere",
      actor: { kind: "account", id: ada.id },
      accountId: ada.id,
      network: "127.0.0.0/24",
      details: '{"sessions":"2"}',
    });
  });

  it("are for those who are signed in", async () => {
    const nobody = site.browser();
    for (const act of [nobody.session.listSessions({}), nobody.session.signOutElsewhere({})]) {
      expect((await errorOf(act)).code).toBe(Code.Unauthenticated);
    }
  });

  it("know a browser by what it says of itself", async () => {
    const ada = await site.signedUp("ada");
    const headers = {
      "content-type": "application/json",
      "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0",
    };
    const body = JSON.stringify({ email: "ada@example.com", password: PASSWORD });
    await site.send("/parley.console.v1.SessionService/SignIn", { headers, body });
    const { sessions } = await ada.session.listSessions({});
    expect(sessions.map(({ browser }) => browser)).toContain("Firefox on Linux");
  });
});

describe("a request whose body arrives slowly", () => {
  /** Creates an invitation with ada's session; the last byte of its body follows when `finish` is called. */
  async function begin(cookie: string) {
    const body = Buffer.from(JSON.stringify({ role: "ACCOUNT_ROLE_ADMINISTRATOR" }));
    const request = sendRequest({
      port: site.server.port,
      host: "127.0.0.1",
      path: "/parley.console.v1.AccountService/CreateInvitation",
      method: "POST",
      headers: {
        cookie,
        origin: `http://127.0.0.1:${site.server.port}`,
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
        "connect-protocol-version": "1",
        "content-length": body.length,
      },
    });
    const answered = once(request, "response") as Promise<[IncomingMessage]>;
    request.write(body.subarray(0, -1));
    await expect.poll(() => site.calls.active).toBe(1);
    return async (): Promise<number> => {
      request.end(body.subarray(-1));
      const [response] = await answered;
      response.resume();
      return response.statusCode!;
    };
  }

  it("is served while its session lives", async () => {
    const ada = await site.signedUp("ada");
    expect(await (await begin(ada.cookie()))()).toBe(200);
  });

  it("is refused when its session has ended meanwhile", async () => {
    const ada = await site.signedUp("ada");
    const elsewhere = await signedInElsewhere();
    const finish = await begin(elsewhere.cookie());
    await ada.session.signOutElsewhere({});
    expect(await finish()).toBe(401);
  });

  it("is refused when its account is no longer an administrator's", async () => {
    const ada = await site.signedUp("ada");
    const bob = await site.signedUp("bob");
    await ada.account.update({ id: bob.id, role: AccountRole.ADMINISTRATOR });
    const finish = await begin(bob.cookie());
    await ada.account.update({ id: bob.id, role: AccountRole.DEVELOPER });
    expect(await finish()).toBe(403);
  });

  it("is refused when its password was confirmed too long ago", async () => {
    const ada = await site.signedUp("ada");
    const finish = await begin(ada.cookie());
    site.access.clock.advance(30 * MINUTE_MS);
    expect(await finish()).toBe(403);
  });
});

describe("a browser's name", () => {
  it.each([
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
      "Edge on Windows",
    ],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15",
      "Safari on macOS",
    ],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1",
      "Safari on iPhone",
    ],
    [
      "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36",
      "Chrome on Android",
    ],
    ["Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/140.0 Safari/537.36", "Chrome on Linux"],
    ["curl/8.14.1", "curl/8.14.1"],
    ["evil\u0000\u202Ename\u0007", "evil name"],
    ["x".repeat(500), "x".repeat(100)],
    ["", undefined],
    ["\u0000", undefined],
  ])("in %s is %s", (userAgent, name) => {
    expect(describeBrowser(userAgent)).toBe(name);
  });
});

describe("calls one after the other on a connection", () => {
  /** The answers to three calls that are sent at once. */
  async function answersTo(method: string, cookie: string): Promise<string[]> {
    const { port } = site.server;
    const head = `POST /parley.console.v1.${method} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncookie: ${cookie}\r\n`;
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.setEncoding("utf8").on("data", (data: string) => void (text += data));
    onTestFinished(() => void socket.destroy());
    socket.write(`${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`.repeat(3));
    const answers = (): string[] => text.match(/HTTP\/1\.1 \d+/g) ?? [];
    await expect.poll(() => socket.closed || answers().length === 3, { timeout: 10_000 }).toBe(true);
    return answers();
  }

  it.each([
    ["SessionService/GetSession", "sid=none", "200"],
    ["SessionService/GetSession", `sid=${"0".repeat(26)}`, "200"],
    ["KeyService/List", "sid=none", "401"],
  ])("are those of somebody who has signed in: %s, %s", async (method, cookie, status) => {
    expect(await answersTo(method, cookie)).toEqual([`HTTP/1.1 ${status}`]);
    const ada = await site.signedUp("ada");
    expect(await answersTo(method, ada.cookie())).toEqual(Array(3).fill("HTTP/1.1 200"));
  });
});

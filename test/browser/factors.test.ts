import type { CDPSession, Page } from "playwright-core";
import { Secret, TOTP } from "otpauth";
import { afterEach, describe, expect, it } from "vitest";
import { startMailServer } from "../support/mail-server.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
afterEach(() => site?.close());

const NEXT_PASSWORD = "another set of words";

/** Passkeys need a host name: the browser visits the product at `localhost`. */
async function start(config: object = {}) {
  site = await startSite({ config });
  const visit = async (path: string): Promise<Visit> => {
    const visited = await site.visit("/docs");
    await visited.page.goto(site.product.url.replace("127.0.0.1", "localhost") + path);
    return visited;
  };
  return { visit };
}

/** A device with passkeys in Chromium, which confirms its user without asking. */
async function addAuthenticator(
  page: Page,
): Promise<{ readonly session: CDPSession; readonly authenticatorId: string }> {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  } as const;
  return { session, ...(await session.send("WebAuthn.addVirtualAuthenticator", { options })) };
}

async function openAccount(page: Page): Promise<void> {
  await page.goto(new URL("/account", page.url()).href);
  await page.getByRole("heading", { name: "Passkeys" }).waitFor();
}

async function addPasskey(page: Page, name: string): Promise<void> {
  await page.getByLabel("Name of the passkey").fill(name);
  await page.getByRole("button", { name: "Add passkey" }).click();
  await page.getByRole("list", { name: "Passkeys" }).getByText(name).waitFor();
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}

/** Sends a recorded call of the page again, and returns its answer. */
async function sendAgain(page: Page, path: string, body: string): Promise<string> {
  return page.evaluate(
    async ([target, text]) => {
      const headers = { "content-type": "application/json" };
      return (await fetch(target!, { method: "POST", headers, body: text! })).text();
    },
    [path, body],
  );
}

describe("passkeys", () => {
  it("are added with names, sign in, confirm, change the password, and are removed", async () => {
    const { visit } = await start();
    const { page, complaints } = await visit("/");
    const { session, authenticatorId } = await addAuthenticator(page);
    await setUp(page);
    await openAccount(page);
    await addPasskey(page, "Laptop");
    // The same device again.
    await page.getByLabel("Name of the passkey").fill("Laptop again");
    await page.getByRole("button", { name: "Add passkey" }).click();
    await page.getByText("This device has a passkey for your account already.").waitFor();
    // Another device.
    await session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
    await addAuthenticator(page);
    await addPasskey(page, "Key ring");
    expect(await findBarriersEverywhere(page)).toEqual([]);

    await signOut(page);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    const called = page.waitForRequest((request) => request.url().endsWith("/SignInByPasskey"));
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByText("last used").waitFor();
    // A copy of what was sent for the sign-in is refused.
    const request = await called;
    const path = new URL(request.url()).pathname;
    expect(await sendAgain(page, path, request.postData()!)).toContain("could not be verified");

    site.forgetPasswords();
    await page.reload();
    await page.getByRole("button", { name: "Remove Laptop" }).click();
    await page.getByRole("button", { name: "Remove passkey" }).click();
    await page.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByRole("list", { name: "Passkeys" }).getByText("Laptop").waitFor({ state: "detached" });

    await page.getByLabel("New password").fill(NEXT_PASSWORD);
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("Password changed.").waitFor();
    await signOut(page);
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(NEXT_PASSWORD);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("button", { name: "Remove Key ring" }).click();
    await page.getByRole("button", { name: "Remove passkey" }).click();
    await page.getByText("No passkeys.").waitFor();
    await signOut(page);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.getByText("This passkey is not known here").waitFor();
    expect(complaints).toEqual([]);
  });

  it("are of one account: another one's confirm nothing", async () => {
    const { visit } = await start({ sign_up: "open" });
    const { page } = await visit("/");
    await addAuthenticator(page);
    await setUp(page);
    await openAccount(page);
    await addPasskey(page, "Laptop");
    const options = await sendAgain(page, "/parley.console.v1.FactorService/GetPasskeyOptions", "{}");
    const { challenge } = JSON.parse(JSON.parse(options).optionsJson);
    const bytes = JSON.stringify([...Buffer.from(challenge, "base64url")]);
    const used = await page.evaluate<string>(
      `navigator.credentials
        .get({ publicKey: { challenge: Uint8Array.from(${bytes}), userVerification: "required" } })
        .then((found) => JSON.stringify(found.toJSON()))`,
    );
    const other = await visit("/sign-up");
    await other.page.getByLabel("E-mail").fill("eve@example.com");
    await other.page.getByLabel("Password").fill(PASSWORD);
    await other.page.getByRole("button", { name: "Create account" }).click();
    await other.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    const confirm = "/parley.console.v1.SessionService/Reauthenticate";
    const body = JSON.stringify({ passkeyJson: used });
    expect(await sendAgain(other.page, confirm, body)).toContain("is not one of your passkeys");
    // Nor does a confirmation sign in.
    const signIn = "/parley.console.v1.FactorService/SignInByPasskey";
    expect(await sendAgain(other.page, signIn, JSON.stringify({ responseJson: used }))).toContain("could not be");
    expect(await sendAgain(page, confirm, body)).toContain("freshUntil");
    expect(await sendAgain(page, confirm, body)).toContain("is not one of your passkeys");
  });
});

describe("a required second factor", () => {
  it("is set up with an app before anything else, and asked for at the next sign-in", async () => {
    const { visit } = await start({ sign_in: { second_factor: "required" } });
    const { page, complaints } = await visit("/");
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Set up a second factor" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Set up authenticator app" }).click();
    const secret = (await page.getByTestId("totp-secret").textContent()) ?? "";
    const codeOf = (steps = 0): string =>
      TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: Date.now() + steps * 30_000 });
    await page.getByRole("img", { name: "QR code of the secret" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("Code", { exact: true }).fill("000000");
    await page.getByRole("button", { name: "Turn on" }).click();
    await page.getByText("check the clock of your device").waitFor();
    await page.getByLabel("Code", { exact: true }).fill(codeOf());
    await page.getByRole("button", { name: "Turn on" }).click();
    const codes = page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await codes.first().waitFor();
    expect(await codes.count()).toBe(10);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    const recoveryCode = (await codes.first().textContent())!;
    await page.getByRole("button", { name: "I have saved them" }).click();
    await page.getByRole("button", { name: "Continue to Parley" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();

    await signOut(page);
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByLabel("Code", { exact: true }).waitFor();
    expect(await page.evaluate("document.activeElement.name")).toBe("code");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("Code", { exact: true }).fill(recoveryCode);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await page.goto(new URL("/account", page.url()).href);
    await page.getByText("9 recovery codes left").waitFor();
    expect(complaints).toEqual([]);
  });
});

describe("a lost password", () => {
  it("is set anew by a link, which a real server for e-mail takes", { timeout: 120_000 }, async () => {
    const { mails, smtp } = await startMailServer();
    const { host, port, security, from } = smtp;
    const http = { listen: "127.0.0.1:0", public_url: "https://parley.example.com" };
    const { visit } = await start({ http, smtp: { host, port, security, from } });
    const { url } = site.product;
    const [setUpLink = ""] = /#setup=[\w-]{43}/.exec(site.product.output.stdout) ?? [];
    const owner = await visit(`/${setUpLink}`);
    await setUp(owner.page);
    const { page, complaints } = await visit("/sign-in");
    await page.getByRole("button", { name: "Forgot your password?" }).click();
    await page.getByRole("heading", { name: "Set a new password" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    for (const email of ["nobody@example.com", "ada@example.com"]) {
      await page.getByLabel("E-mail").fill(email);
      await page.getByRole("button", { name: "Send the link" }).click();
      await page.getByText(`If ${email} has an account with a password`).waitFor();
      expect(await findBarriersEverywhere(page)).toEqual([]);
      await page.getByRole("button", { name: "Back to the sign-in" }).click();
      await page.getByRole("button", { name: "Forgot your password?" }).click();
    }
    await expect.poll(() => mails.length, { timeout: 10_000 }).toBe(1);
    const [{ to, text }] = mails as [(typeof mails)[0]];
    expect(to).toEqual(["ada@example.com"]);
    const plain = text.replaceAll("=\r\n", "").replaceAll("=3D", "=");
    const [, path = ""] = /https:\/\/parley\.example\.com(\/sign-in#reset=[\w-]{43})/.exec(plain) ?? [];
    const link = url + path;
    // A change of the fragment alone would load nothing.
    await page.goto(`${url}/docs`);
    await page.goto(link);
    await page.getByLabel("New password").fill("short");
    await page.getByRole("button", { name: "Set password" }).click();
    await page.getByText("at least 12 characters").first().waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("New password").fill(NEXT_PASSWORD);
    await page.getByRole("button", { name: "Set password" }).click();
    await page.getByRole("heading", { name: "Your password is set" }).waitFor();
    await page.getByRole("button", { name: "Go to the sign-in" }).click();
    expect(page.url()).not.toContain("reset=");
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(NEXT_PASSWORD);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    // The earlier session has ended.
    await owner.page.reload();
    await owner.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(`${url}/docs`);
    await page.goto(link);
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });
});

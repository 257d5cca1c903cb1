import { readFile } from "node:fs/promises";
import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere, TABLE_SIZES } from "./support/accessibility.ts";
import { createKey, openKeys, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

/** Text that would execute, or close an element, if it were not escaped. */
const HOSTILE = `"><img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>evil`;

let site: Site;
let ada: Visit;
let bob: Visit;
let link = "";
let bobsKey = "";

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "invited" } });
  ada = await site.visit("/");
  await setUp(ada.page);
});
afterAll(() => site?.close());

async function go({ page }: Visit, path: string, heading: string): Promise<void> {
  await page.goto(site.product.url + path);
  await page.getByRole("heading", { name: heading, exact: true, level: 1 }).waitFor();
}

async function signIn({ page }: Visit, email: string): Promise<void> {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Sends a request with this key. Returns the HTTP status. */
async function ask(apiKey: string): Promise<number> {
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  try {
    await client.chat.completions.create({
      model: "alpha-haiku-4.5",
      messages: [{ role: "user", content: "Write 3 words" }],
    });
    return 200;
  } catch (error) {
    return (error as { status: number }).status;
  }
}

const item = (page: Page, list: string, text: string) =>
  page.getByRole("list", { name: list, exact: true }).getByRole("listitem").filter({ hasText: text });

/** A row of the table of accounts, without its header. */
const account = (page: Page, text: string) =>
  page
    .getByRole("table", { name: "Accounts" })
    .getByRole("row")
    .filter({ has: page.getByRole("cell") })
    .filter({ hasText: text });

/** Number of rows of the table that are wholly in the window, without its header. */
function rowsInView(page: Page): Promise<number> {
  return page.evaluate<number>(
    "[...document.querySelectorAll('[role=row]')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length - 1",
  );
}

async function closed(page: Page): Promise<void> {
  await page.getByRole("dialog").first().waitFor({ state: "detached" });
}

// The steps depend on each other.
describe("an invitation", () => {
  it("shows validation errors at the field", async () => {
    const { page } = ada;
    await go(ada, "/admin/invitations", "Invitations");
    await page.getByText("No invitations").waitFor();
    await page.getByRole("button", { name: "Invite" }).click();
    await page.getByLabel("E-mail (optional)").fill("no address");
    await page.getByRole("button", { name: "Create link" }).click();
    await expect.poll(() => page.locator("input[aria-invalid]:focus").count()).toBe(1);
    await page.getByLabel("E-mail (optional)").fill("ada@example.com");
    await page.getByRole("button", { name: "Create link" }).click();
    await page.getByText("Already has an account.").waitFor();
  });

  it("shows a link once, with a copy button", async () => {
    const { page } = ada;
    await page.getByLabel("E-mail (optional)").fill("bob@example.com");
    await page.getByRole("button", { name: "Create link" }).click();
    link = (await page.getByTestId("invitation").textContent()) ?? "";
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/sign-up#invitation=[\w-]{43}$/);
    await page.getByRole("button", { name: "Copy the link" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(link);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "I have copied it" }).click();
    await closed(page);
    await item(page, "Invitations", "bob@example.com").getByText("Pending, expires in 7 days").waitFor();
    expect(await page.content()).not.toContain(link.split("=")[1]);
  });

  it("shows a signed-in user a notice, and continues after sign-out", async () => {
    bob = await site.visit("/sign-in");
    await signIn(bob, "ada@example.com");
    await bob.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await bob.page.goto(link);
    await bob.page.reload();
    await bob.page.getByRole("heading", { name: "Already signed in" }).waitFor();
    expect(await bob.page.getByRole("main").innerText()).toContain("ada@example.com");
    await bob.page.getByRole("button", { name: "Sign out and continue" }).click();
    await bob.page.getByRole("heading", { name: "Accept your invitation" }).waitFor();
  });

  it("creates an account, and can be used only once", async () => {
    const { page } = bob;
    expect(await page.getByLabel("E-mail").inputValue()).toBe("bob@example.com");
    await page.getByLabel("Name (optional)").fill("Bob");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create account" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await openKeys(page);
    bobsKey = await createKey(page, "Bob's program");
    expect(await ask(bobsKey)).toBe(200);
    await ada.page.reload();
    await item(ada.page, "Invitations", "bob@example.com").getByText("Used just now").waitFor();
    expect(await ada.page.getByRole("button", { name: /^Revoke/ }).count()).toBe(0);
  });

  it("is rejected after revocation", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Invite" }).click();
    await page.getByRole("button", { name: "Create link" }).click();
    const revoked = (await page.getByTestId("invitation").textContent()) ?? "";
    await page.getByRole("button", { name: "I have copied it" }).click();
    await closed(page);
    await page.getByRole("button", { name: "Revoke the invitation for anyone with the link" }).click();
    await page.getByRole("button", { name: "Revoke invitation" }).click();
    await closed(page);
    await expect.poll(() => item(page, "Invitations", "Anyone").count()).toBe(0);
    const eve = await site.visit(revoked.slice(site.product.url.length));
    await eve.page.getByRole("heading", { name: "This invitation is not valid" }).waitFor();
    expect(await eve.page.getByLabel("Password").count()).toBe(0);
    expect(await findBarriersEverywhere(eve.page)).toEqual([]);
  });
});

describe("a key limited by an administrator", () => {
  it("shows this to the developer, who can only rename it", async () => {
    await go(ada, "/keys", "Keys");
    await ada.page.getByRole("button", { name: "Edit Bob's program" }).click();
    await ada.page.locator("summary", { hasText: "Limits" }).click();
    await ada.page.getByLabel("Requests per minute").fill("500");
    await ada.page.getByRole("button", { name: "Save" }).click();
    await closed(ada.page);
    const { page } = bob;
    await go(bob, "/keys", "Keys");
    await page.getByRole("button", { name: "Edit Bob's program" }).click();
    await page.getByText("Locked by an administrator.").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.locator("summary", { hasText: "Limits" }).click();
    expect(await page.getByLabel("Requests per minute").isDisabled()).toBe(true);
    expect(await page.getByLabel("Requests per minute").inputValue()).toBe("500");
    await page.getByLabel("Name", { exact: true }).fill("Bob's only program");
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await page.getByText("Bob's only program").waitFor();
    await page.getByRole("button", { name: "Edit Bob's only program" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Bob's program");
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    expect(await ask(bobsKey)).toBe(200);
  });
});

describe("a developer", () => {
  it("sees no link to the administration, and a notice on its pages", async () => {
    const { page } = bob;
    expect(await page.getByRole("link", { name: "Administration", exact: true }).count()).toBe(0);
    for (const [path, heading] of [
      ["accounts", "Accounts"],
      ["teams", "Teams"],
      ["invitations", "Invitations"],
      ["configuration", "Providers & models"],
      ["configuration/versions", "Versions"],
      ["providers", "Provider health"],
      ["audit", "Audit log"],
      ["settings", "Settings"],
    ] as const) {
      await go(bob, `/admin/${path}`, heading);
      await page.getByText("Administrators only", { exact: true }).waitFor();
      expect(await page.getByRole("main").getByRole("listitem").count()).toBe(0);
    }
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });
});

describe("accounts", () => {
  it("are found by name and e-mail address, with their active keys", async () => {
    const { page } = ada;
    await page.getByRole("link", { name: "Administration", exact: true }).click();
    await page.getByRole("heading", { name: "Accounts", exact: true }).waitFor();
    await page.getByLabel("Find an account").fill("BOB@");
    await expect.poll(() => page.getByText("1 account", { exact: true }).count()).toBe(1);
    expect(await account(page, "Bob").getByRole("cell").nth(3).innerText()).toMatch(/1$/);
    await page.getByLabel("Find an account").fill("");
    await page.getByLabel("Show").selectOption("Owners");
    await expect.poll(() => account(page, "").count()).toBe(1);
    await page.getByLabel("Show").selectOption("All");
  });

  it("can be given a role and limits, with validation errors at the field", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Edit Bob" }).click();
    await page.getByLabel("Role").selectOption("Administrator");
    await page.locator("summary", { hasText: "Limits" }).click();
    await page.getByLabel("Requests per minute").fill("0");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/from 1 to/).waitFor();
    await page.getByLabel("Requests per minute").fill("30");
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await account(page, "Bob").getByText("30 requests/min").waitFor();
    await account(page, "Bob").getByText("Administrator").waitFor();
    await bob.page.reload();
    await bob.page.getByRole("link", { name: "Administration", exact: true }).waitFor();
    await page.getByRole("button", { name: "Edit Bob" }).click();
    await page.getByLabel("Role").selectOption("Developer");
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await expect.poll(() => account(page, "Bob").innerText()).not.toContain("Administrator");
  });

  it("can be changed while the browser is offline, because the gateway may run on the same machine", async () => {
    const { page } = ada;
    await page.evaluate("dispatchEvent(new Event('offline'))");
    await page.getByRole("button", { name: "Edit Bob" }).click();
    await page.locator("summary", { hasText: "Limits" }).click();
    await page.getByLabel("Requests per minute").fill("31");
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await expect.poll(() => account(page, "Bob").innerText()).toContain("31 requests/min");
    await page.evaluate("dispatchEvent(new Event('online'))");
  });

  it("must include an owner: the last one cannot be disabled or demoted", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Disable Ada" }).click();
    await page.getByText("This is your own account").waitFor();
    await page.getByRole("button", { name: "Disable account" }).click();
    const refusal = page.getByRole("alert");
    await expect.poll(() => refusal.innerText()).toContain("This is the last owner.");
    await page.getByRole("button", { name: "Cancel" }).click();
    await closed(page);
    await page.getByRole("button", { name: "Edit Ada" }).click();
    await page.getByLabel("Role").selectOption("Developer");
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => refusal.innerText()).toContain("This is the last owner.");
    await page.getByRole("button", { name: "Cancel" }).click();
    await closed(page);
  });

  it("lose session and keys when disabled, and regain their keys when enabled", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Disable Bob" }).click();
    await page.getByText(/signed out everywhere[\s\S]*Its keys \(1\) stop working/).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Disable account" }).click();
    await closed(page);
    await account(page, "Bob").getByText("Disabled just now").waitFor();
    await expect.poll(() => ask(bobsKey), { timeout: 5_000 }).toBe(401);
    await bob.page.reload();
    await bob.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(bob, "bob@example.com");
    await bob.page.getByRole("alert").waitFor();
    await page.getByRole("button", { name: "Enable Bob" }).click();
    await page.getByRole("button", { name: "Enable account" }).click();
    await closed(page);
    await expect.poll(() => ask(bobsKey), { timeout: 5_000 }).toBe(200);
    await signIn(bob, "bob@example.com");
    await bob.page
      .getByRole("heading", { name: "Administrators only" })
      .or(bob.page.getByText("Administrators only"))
      .waitFor();
  });

  it("escape a hostile name everywhere", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Edit Bob" }).click();
    await page.getByLabel("Name", { exact: true }).fill(HOSTILE);
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await account(page, HOSTILE).waitFor();
    await page.getByRole("button", { name: `Disable ${HOSTILE}` }).click();
    await page.getByRole("dialog").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await closed(page);
    await go(ada, "/admin/audit", "Audit log");
    await page.getByRole("row").filter({ hasText: HOSTILE }).first().waitFor();
    expect(await page.locator("img[src=x], script:not([src])").count()).toBe(0);
    expect(await page.title()).toBe("Audit log · Parley");
  });

  it("stay usable with more than a thousand entries", async () => {
    const { page } = ada;
    site.edit((database) => {
      const insert = database.prepare(
        "INSERT INTO accounts (id, name, email, role, password_hash, created_at_ms) VALUES (?, ?, ?, 'member', 'x', ?)",
      );
      for (let index = 0; index < 1_200; index += 1) {
        insert.run(`acct_many${index}`, `Many ${index}`, `many-${index}@example.com`, 1_700_000_000_000 + (index >> 3));
      }
    });
    await go(ada, "/admin/accounts", "Accounts");
    await page.getByText("1,202 accounts").waitFor();
    expect(await account(page, "").count()).toBe(50);
    await page.getByRole("button", { name: /^Show more/ }).click();
    await expect.poll(() => account(page, "").count()).toBe(100);
    await page.getByLabel("Find an account").fill("many-1199@");
    await expect.poll(() => account(page, "").count()).toBe(1);
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("are lines of a table, 20 on a laptop's screen, and sorted by the keyboard", async () => {
    const { page } = ada;
    await go(ada, "/admin/accounts", "Accounts");
    await expect.poll(() => rowsInView(page)).toBeGreaterThanOrEqual(20);
    await page.getByRole("button", { name: "E-mail", exact: true }).press("Enter");
    await page
      .getByRole("columnheader", { name: "E-mail", exact: true })
      .and(page.locator("[aria-sort=ascending]"))
      .waitFor();
    await account(page, "").first().getByText("ada@example.com").waitFor();
    await page.getByRole("button", { name: "E-mail", exact: true }).press("Enter");
    await account(page, "").first().getByText("many-9@example.com").waitFor();
    expect(await findBarriersEverywhere(page, TABLE_SIZES)).toEqual([]);
  }, 180_000);
});

describe("the audit log", () => {
  const rows = (page: Page) => page.getByRole("table", { name: "Audit log" }).getByRole("row");
  /** Chooses in a field with many choices, once they are there. */
  const find = async (page: Page, label: string, name: string): Promise<void> => {
    await page
      .locator("input[role=combobox]")
      .and(page.getByLabel(label, { exact: true }))
      .fill(name);
    await page.getByRole("option", { name, exact: true }).click();
  };

  it("shows who changed what and from where, with the values before and after", async () => {
    const { page } = ada;
    await go(ada, "/admin/audit", "Audit log");
    await find(page, "Action", "Account renamed");
    const renamed = rows(page).filter({ hasText: "Bob →" });
    await renamed.filter({ hasText: "127.0.0.0/24" }).filter({ hasText: "Ada" }).first().waitFor();
    expect(await rows(page).filter({ hasText: "Signed in" }).count()).toBe(0);
    expect(new URL(page.url()).search).toBe("?action=account_renamed");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await renamed.first().getByRole("button").click();
    const dialog = page.getByRole("dialog", { name: "Account renamed" });
    await dialog.getByRole("row", { name: /name Bob/ }).waitFor();
    await dialog.getByText("Chrome on Linux").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByRole("button", { name: "All entries about this" }).click();
    await page.getByRole("button", { name: /^Remove filter Object: (?!acct_)/ }).waitFor();
  });

  it("is narrowed by actor, account, result and time", async () => {
    const { page } = ada;
    await go(ada, "/admin/audit", "Audit log");
    await find(page, "Account concerned", "Ada, ada@example.com");
    await page.getByLabel("Time").selectOption({ label: "Last hour" });
    await rows(page).filter({ hasText: "Signed up" }).first().waitFor();
    await expect.poll(() => rows(page).filter({ hasText: "Account disabled" }).count()).toBe(0);
    expect(new URL(page.url()).search).toBe("?account=acct_default&range=1h");
    await find(page, "Actor", "Command line");
    await page.getByText("No change and no sign-in matches these filters.").waitFor();
    const chips = page.getByRole("group", { name: "Active filters" });
    expect(await chips.getByRole("button").allTextContents()).toEqual([
      "Remove filter Actor: Command line",
      "Remove filter Account concerned: Ada, ada@example.com",
      "Remove filter Time: Last hour",
      "Clear all",
    ]);
    await chips.getByRole("button", { name: "Remove filter Actor: Command line" }).click();
    await rows(page).filter({ hasText: "Signed up" }).first().waitFor();
    await chips.getByRole("button", { name: "Clear all" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("");
    await page.getByLabel("Result").selectOption({ label: "Failed" });
    await expect.poll(() => new URL(page.url()).search).toBe("?result=failed");
  });

  it("is used with the keyboard, and returns the focus", async () => {
    const { page } = ada;
    await go(ada, "/admin/audit", "Audit log");
    const first = rows(page).nth(1).getByRole("button");
    await first.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await closed(page);
    await expect.poll(() => rows(page).nth(1).locator("button:focus").count()).toBe(1);
  });

  it("is exported as CSV and JSON lines, as the filters have narrowed it", async () => {
    const { page } = ada;
    await go(ada, "/admin/audit?action=account_disabled", "Audit log");
    const texts: string[] = [];
    for (const name of ["Export CSV", "Export JSON lines"]) {
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      texts.push(await readFile(await file.path(), "utf8"));
    }
    const [csv = "", lines = ""] = texts;
    expect(csv).toMatch(/^sequence,time,action,actor_kind,.*,hash\r\n\d+,.*,account_disabled,account,acct_default,/);
    const entries = lines
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { action: string; after: object });
    expect(entries[0]).toMatchObject({ action: "account_disabled", after: { disabled: true } });
    expect(csv.trimEnd().split("\r\n")).toHaveLength(entries.length + 1);
  });

  it("loads more on demand, without duplicates", async () => {
    const { page } = ada;
    site.edit((database) => {
      const insert = database.prepare(
        "INSERT INTO audit_entries (sequence, at_ms, action, actor_kind, result, network, hash) VALUES (?, 1700000000000, 'signed_in', 'nobody', 'done', '192.0.2.0/24', 'x')",
      );
      for (let index = 0; index < 75; index += 1) insert.run(1_000_000 + index);
    });
    await go(ada, "/admin/audit", "Audit log");
    await expect.poll(() => rows(page).count()).toBe(51);
    const more = page.getByRole("button", { name: "Show more" });
    while ((await more.count()) > 0) {
      const before = await rows(page).count();
      await more.click();
      await expect.poll(() => rows(page).count()).toBeGreaterThan(before);
    }
    await expect.poll(() => rows(page).filter({ hasText: "192.0.2.0/24" }).count()).toBe(75);
  });
});

describe("sessions", () => {
  it("are listed on the account page, where other sessions can be ended", async () => {
    const elsewhere = await site.visit("/sign-in");
    await signIn(elsewhere, "ada@example.com");
    await elsewhere.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    const { page } = ada;
    await go(ada, "/account", "Account");
    const sessions = page.getByRole("list", { name: "Sessions" }).getByRole("listitem");
    await expect.poll(() => sessions.count()).toBe(2);
    expect(await sessions.first().innerText()).toContain("Chrome on Linux");
    await expect.poll(() => page.getByText("This session").count()).toBe(1);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign out other sessions" }).click();
    await page.getByText("Signed out of 1 other session.").waitFor();
    await expect.poll(() => sessions.count()).toBe(1);
    await elsewhere.page.getByRole("link", { name: "Models", exact: true }).click();
    await elsewhere.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Account", exact: true }).waitFor();
  });

  it("stay open, with an error, if the sign-out fails", async () => {
    const { page } = ada;
    const path = "**/parley.console.v1.SessionService/SignOut";
    await page.route(path, (route) => route.abort());
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.getByText(/You are still signed in\. Can’t reach Parley/).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.unroute(path);
  });
});

describe("keyboard navigation", () => {
  it("can open the accounts, find one and change it", async () => {
    const { page } = ada;
    await go(ada, "/admin/settings", "Settings");
    await tabTo(page, "Accounts");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Accounts", exact: true }).waitFor();
    await tabTo(page, "Find an account");
    await page.keyboard.type("many-7@");
    await expect.poll(() => page.getByText("1 account", { exact: true }).count()).toBe(1);
    await tabTo(page, "Edit Many 7");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement.name")).toBe("name");
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("By keyboard");
    await page.keyboard.press("Enter");
    await closed(page);
    await account(page, "By keyboard").waitFor();
    expect(await page.evaluate("document.activeElement.ariaLabel")).toBe("Edit By keyboard");
  });
});

describe("the administration", () => {
  it("causes no browser errors", () => {
    // Includes the aborted sign-out: refused and failed calls of the services are not recorded.
    expect([...ada.complaints, ...bob.complaints]).toEqual([]);
  });
});

/** Presses Tab until the element with this label or text has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  const label = `document.activeElement.ariaLabel ?? (document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()`;
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(label)) === name) return;
  }
  throw new Error(`Tab does not lead to ${name}`);
}

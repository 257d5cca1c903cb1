import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey, openKeys, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

/** Text that would execute, or close an element, if it were not escaped. */
const HOSTILE = `"><img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>{{7*7}}evil`;

let site: Site;
let ada: Visit;

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "invited" } });
  ada = await site.visit("/");
});
afterAll(() => site?.close());

/** Returns the error of the focused invalid field. */
async function fieldError({ page }: Visit): Promise<string> {
  const field = page.locator("input[aria-invalid]:focus");
  await field.waitFor();
  const notes = (await field.getAttribute("aria-describedby"))?.split(" ") ?? [];
  return page.locator(`[id="${notes[0]}"]`).innerText();
}

describe("the set-up", () => {
  it("shows validation errors at the field, and keeps the input", async () => {
    const { page } = ada;
    const create = page.getByRole("button", { name: "Create owner" });
    await create.click();
    expect(await fieldError(ada)).toMatch(/e-mail address/);
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill("short");
    await create.click();
    await expect.poll(() => fieldError(ada)).toMatch(/12 characters/);
    await page.getByLabel("Password").fill("passwordpassword");
    await create.click();
    await expect.poll(() => fieldError(ada)).toMatch(/too common/);
    expect(await page.getByLabel("E-mail").inputValue()).toBe("ada@example.com");
    await setUp(page);
  });
});

describe("the sign-in", () => {
  it("shows the same error for an unknown address and a wrong password", async () => {
    const visit = await site.visit("/usage");
    const { page } = visit;
    const answers: string[] = [];
    for (const email of ["nobody@example.com", "ada@example.com"]) {
      await page.getByLabel("E-mail").fill(email);
      await page.getByLabel("Password").fill("not this password");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").waitFor();
      answers.push(await page.getByRole("alert").innerText());
    }
    expect(new Set(answers).size).toBe(1);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    // The sign-in opens the requested page.
    await page.getByRole("heading", { name: "Usage" }).waitFor();
    expect(visit.complaints).toEqual([]);
  });
});

describe("the sign-up by invitation", () => {
  it("is closed without a link, and rejects an invalid one", async () => {
    const { page } = await site.visit("/sign-up");
    await page.getByRole("heading", { name: "Sign-up is not available" }).waitFor();
    const guessed = await site.visit("/sign-up#invitation=guessed");
    await guessed.page.getByRole("heading", { name: "This invitation is not valid" }).waitFor();
    expect(await guessed.page.getByLabel("Password").count()).toBe(0);
  });

  it("creates a developer's account, which sees only its own keys", async () => {
    const token = await invite(ada);
    const bob = await site.visit(`/sign-up#invitation=${token}`);
    await bob.page.getByRole("heading", { name: "Accept your invitation" }).waitFor();
    await bob.page.getByLabel("E-mail").fill("bob@example.com");
    await bob.page.getByLabel("Password").fill(PASSWORD);
    await bob.page.getByRole("button", { name: "Create account" }).click();
    await bob.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await openKeys(bob.page);
    await bob.page.getByText("No active keys").waitFor();
    await createKey(bob.page, "bob's");
    expect(await bob.page.getByText("first key").count()).toBe(0);
    expect(await bob.page.getByText("Developer", { exact: true }).count()).toBe(1);
    expect(new URL(bob.page.url()).hash).toBe("");
    await ada.page.reload();
    await ada.page.getByRole("row").filter({ hasText: "bob's" }).getByText("of bob").waitFor();
    expect(bob.complaints).toEqual([]);
  });
});

describe("the form of a key", () => {
  it("shows validation errors at each field", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Create key" }).click();
    const create = page.getByRole("dialog").getByRole("button", { name: "Create key" });
    await create.click();
    expect(await fieldError(ada)).toMatch(/^Enter a name\.$/);
    await page.getByLabel("Name", { exact: true }).fill("limited");
    await page.locator("summary", { hasText: "Limits" }).click();
    for (const [label, wrong, what] of [
      ["Requests per minute", "many", /whole number/],
      ["Tokens per minute", "0", /from 1 to/],
      ["Concurrent requests", "2000000", /from 1 to/],
      ["Monthly budget", "1.5.2", /amount/],
    ] as const) {
      await page.getByLabel(label).fill(wrong);
      await create.click();
      await expect.poll(() => fieldError(ada)).toMatch(what);
      await page.getByLabel(label).fill("");
    }
    await page.locator("summary", { hasText: "End users" }).click();
    await page.getByLabel("Budget per session").fill("much");
    await create.click();
    await expect.poll(() => fieldError(ada)).toMatch(/amount/);
    await page.getByLabel("Budget per session").fill("");
    await page.locator("summary", { hasText: "Permissions" }).click();
    await page.getByLabel("Selected models only").check();
    await create.click();
    await page.getByText("Select at least one model, or all models.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").first().waitFor({ state: "detached" });
  });

  it("stores the settings, which can be edited later", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("limited");
    await page.getByLabel("Expires").selectOption("In 7 days");
    await page.locator("summary", { hasText: "Permissions" }).click();
    await page.getByLabel("Selected models only").check();
    await page.getByLabel("beta-3-flash", { exact: true }).check();
    await page.getByLabel("Image generation").uncheck();
    await page.locator("summary", { hasText: "Limits" }).click();
    await page.getByLabel("Requests per minute").fill("1,200");
    await page.getByLabel("Monthly budget").fill("7.50");
    await page.locator("summary", { hasText: "End users" }).click();
    await page.getByLabel("Requests per end user").fill("20");
    await page.getByLabel("Budget per end user").fill("0.50");
    await page.getByLabel("Period").selectOption("Month (UTC)");
    await page.getByLabel("Refuse requests without an end user").check();
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
    const item = page.getByRole("row").filter({ hasText: "limited" });
    expect(await item.innerText()).toMatch(
      /Expires\s+in 7 days[\s\S]*beta-3-flash; chat[\s\S]*1\.2K requests[\s\S]*of \$7\.50/,
    );
    expect(await item.innerText()).toMatch(
      /20 requests\/min per end user, \$0\.50\/month per end user, end user required/,
    );

    await item.getByRole("button", { name: "Edit limited" }).click();
    expect(await page.getByLabel("beta-3-flash", { exact: true }).isChecked()).toBe(true);
    expect(await page.getByLabel("Image generation").isChecked()).toBe(false);
    await page.locator("summary", { hasText: "Limits" }).click();
    expect(await page.getByLabel("Monthly budget").inputValue()).toBe("7.5");
    await page.getByLabel("Requests per minute").fill("");
    await page.locator("summary", { hasText: "End users" }).click();
    expect(await page.getByLabel("Budget per end user").inputValue()).toBe("0.5");
    expect(await page.getByLabel("Period").inputValue()).toBe("2");
    await page.getByLabel("Requests per end user").fill("");
    await page.getByLabel("Refuse requests without an end user").uncheck();
    await page.getByLabel("Name", { exact: true }).fill("renamed");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").first().waitFor({ state: "detached" });
    const renamed = page.getByRole("row").filter({ hasText: "renamed" });
    await renamed.waitFor();
    expect(await renamed.innerText()).not.toMatch(/requests\/min|end user required/);
    expect(await renamed.innerText()).toContain("$0.50/month per end user");
  });

  it("escapes a hostile name everywhere", async () => {
    const { page } = ada;
    await createKey(page, HOSTILE);
    await page.getByRole("row").filter({ hasText: HOSTILE }).waitFor();
    for (const act of ["Edit", "Rotate", "Revoke"]) {
      await page.getByRole("button", { name: `${act} ${HOSTILE}` }).click();
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").first().waitFor({ state: "detached" });
    }
    await page.goto(`${site.product.url}/account`);
    await page.getByLabel("Name", { exact: true }).fill(HOSTILE);
    await page.getByRole("button", { name: "Save name" }).click();
    await page.getByText("Name saved.").waitFor();
    expect(await page.locator("img[src=x], script:not([src])").count()).toBe(0);
    expect(await page.title()).toBe("Account · Parley");
  });
});

describe("the password change", () => {
  it("shows validation errors, and ends all other sessions", async () => {
    const elsewhere = await site.visit("/sign-in");
    await elsewhere.page.getByLabel("E-mail").fill("ada@example.com");
    await elsewhere.page.getByLabel("Password").fill(PASSWORD);
    await elsewhere.page.getByRole("button", { name: "Sign in" }).click();
    await elsewhere.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();

    const { page } = ada;
    await page.goto(`${site.product.url}/account`);
    await page.getByLabel("Current password").fill("not my password");
    await page.getByLabel("New password").fill("five entirely other words");
    await page.getByRole("button", { name: "Change password" }).click();
    expect(await fieldError(ada)).toMatch(/wrong password/i);
    await page.getByLabel("Current password").fill(PASSWORD);
    await page.getByLabel("New password").fill("short");
    await page.getByRole("button", { name: "Change password" }).click();
    await expect.poll(() => fieldError(ada)).toMatch(/12 characters/);
    await page.getByLabel("New password").fill("five entirely other words");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("Other browsers were signed out.").waitFor();
    expect(await page.getByLabel("New password").inputValue()).toBe("");

    await elsewhere.page.getByRole("link", { name: "Models", exact: true }).click();
    await elsewhere.page.getByRole("heading", { name: "Sign in" }).waitFor();
  });
});

describe("the forms", () => {
  it("cause no browser errors", () => {
    expect(ada.complaints).toEqual([]);
  });
});

/** Creates an invitation by calling the service with the session of this browser. */
async function invite({ page }: Visit): Promise<string> {
  const answer: { token: string } = await page.evaluate(`fetch("/parley.console.v1.AccountService/CreateInvitation", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ role: "ACCOUNT_ROLE_DEVELOPER" }),
  }).then((response) => response.json())`);
  return answer.token;
}

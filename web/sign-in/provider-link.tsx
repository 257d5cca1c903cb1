import { buttonClass } from "../components/button.tsx";
import { PATHS } from "../paths.ts";

/** The server's page that sends the browser to the OpenID provider. */
const START = "/auth/oidc/start";

/** Link to the OpenID provider, from where the browser returns to the page that it is on. */
export function ProviderLink({ name, look }: { readonly name: string; readonly look: "primary" | "secondary" }) {
  const { pathname, search, hash } = location;
  const isEntrance = pathname === PATHS.signIn || pathname === PATHS.signUp;
  const path = isEntrance ? PATHS.home : pathname + search + hash;
  return (
    <a href={`${START}?return=${encodeURIComponent(path)}`} className={`${buttonClass(look)} w-full`}>
      Sign in with {name}
    </a>
  );
}

/** Address at which a signed-in user confirms at the provider, in a separate tab. */
export const CONFIRM_ADDRESS = `${START}?confirm=1&return=${encodeURIComponent(PATHS.confirmed)}`;

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { sessionQuery } from "../api/session.ts";
import { Entrance } from "../sign-in/entrance.tsx";
import { buttonClass } from "../components/button.tsx";
import { Empty, Page } from "../components/page.tsx";
import { PATHS } from "../paths.ts";

const TITLE = "Page not found";

/** Page for an unknown URL; the server responds with 404. */
export default function NotFound() {
  const isSignedIn = useQuery(sessionQuery).data?.session !== undefined;
  const link = (
    <Link href={isSignedIn ? PATHS.home : PATHS.signIn} className={buttonClass("secondary")}>
      {isSignedIn ? "Go to Overview" : "Sign in"}
    </Link>
  );
  if (!isSignedIn) {
    return (
      <Entrance title={TITLE} description="There is no page at this address.">
        {link}
      </Entrance>
    );
  }
  return (
    <Page title={TITLE}>
      <Empty title="There is no page at this address">{link}</Empty>
    </Page>
  );
}

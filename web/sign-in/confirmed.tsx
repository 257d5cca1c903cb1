import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "../api/session.ts";
import { Alert } from "../components/alert.tsx";
import { buttonClass } from "../components/button.tsx";
import { Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { readProblem } from "./problems.ts";
import { CONFIRM_ADDRESS } from "./provider-link.tsx";

/** The end of a confirmation at the OpenID provider. The page that asked for it is in another tab. */
export default function Confirmed() {
  const provider = useQuery(sessionQuery).data?.providerName ?? "";
  const problem = readProblem(location.search, provider);
  if (problem === undefined) {
    return (
      <Page title="Confirmed">
        <Panel title="You have confirmed that it is you">
          <p className="text-[0.9375rem]">Close this tab and continue in the one that asked you to confirm.</p>
        </Panel>
      </Page>
    );
  }
  return (
    <Page title="Not confirmed">
      <Panel title="Parley could not confirm that it is you">
        <Alert>{problem}</Alert>
        <a href={CONFIRM_ADDRESS} className={`${buttonClass("secondary")} mt-5`}>
          Try again
        </a>
      </Panel>
    </Page>
  );
}

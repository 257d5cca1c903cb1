import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { noteRequest, requests } from "../api/requests.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { requestPath } from "../paths.ts";

/** Form that opens a request by its ID. */
export function FindRequest() {
  const [, go] = useLocation();
  const find = useMutation({
    mutationFn: (id: string) => requests.get({ id }),
    onSuccess({ request }) {
      if (request === undefined) return;
      noteRequest(request);
      go(requestPath(request.id));
    },
  });
  return (
    <Form
      fields={["id"]}
      error={find.error}
      onSubmit={(written) => find.mutate(written.get("id").trim())}
      className="flex flex-wrap items-start gap-3 *:[[role=alert]]:w-full"
    >
      {(errors) => (
        <>
          <div className="min-w-0 flex-1">
            <TextField
              label="Find by ID"
              isLabelHidden
              name="id"
              placeholder="Request or chatcmpl ID"
              autoComplete="off"
              spellCheck={false}
              error={errors("id")}
            />
          </div>
          <Button type="submit" look="secondary" busy={find.isPending}>
            Find
          </Button>
        </>
      )}
    </Form>
  );
}

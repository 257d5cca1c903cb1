import { useMutation } from "@tanstack/react-query";
import { passwords } from "../api/passwords.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { Entrance } from "./entrance.tsx";

/** Form that requests a link for a new password. */
export default function Forgot({ onDone }: { readonly onDone: () => void }) {
  const request = useMutation({ mutationFn: (email: string) => passwords.requestReset({ email }) });
  const back = (
    <Button look="quiet" size="small" onClick={onDone}>
      Back to the sign-in
    </Button>
  );
  if (request.isSuccess) {
    return (
      <Entrance title="Check your e-mail" footer={back}>
        <p role="status" className="text-[0.9375rem]">
          If <bdi className="font-medium wrap-anywhere">{request.variables}</bdi> has an account with a password, a link
          is on its way. It works once, for an hour.
        </p>
      </Entrance>
    );
  }
  return (
    <Entrance title="Set a new password" description="A link is sent to your e-mail address." footer={back}>
      <Form fields={["email"]} error={request.error} onSubmit={(written) => request.mutate(written.get("email"))}>
        {(errors) => (
          <>
            <TextField label="E-mail" name="email" type="email" autoComplete="username" error={errors("email")} />
            <Button type="submit" busy={request.isPending} className="w-full">
              Send the link
            </Button>
          </>
        )}
      </Form>
    </Entrance>
  );
}

import { useState } from "react";
import { Code, ConnectError } from "@connectrpc/connect";
import { useMutation } from "@tanstack/react-query";
import type { ChangeConfigurationResponse } from "../../gen/parley/console/v1/configuration_pb.js";
import { refreshConfiguration } from "../api/configuration.ts";

interface ChangeOptions<V> {
  /** The version that was shown when the dialog opened. */
  readonly version: bigint;
  readonly send: (expectedVersion: bigint, values: V) => Promise<ChangeConfigurationResponse>;
  readonly onSaved: (response: ChangeConfigurationResponse) => void;
}

/**
 * A change of the stored configuration. If another user has changed the configuration since the dialog opened, it fails
 * as a conflict and loads the latest version, on top of which it can be sent again.
 */
export function useChange<V = void>({ version, send, onSaved }: ChangeOptions<V>) {
  const [expected, setExpected] = useState(version);
  const change = useMutation({
    mutationFn: (values: V) => send(expected, values),
    async onSuccess(response) {
      await refreshConfiguration();
      onSaved(response);
    },
    async onError(error) {
      if (isConflict(error)) setExpected(await refreshConfiguration());
    },
  });
  return { ...change, isConflict: isConflict(change.error) };
}

/** Whether another user has changed the configuration since the dialog opened. */
export function isConflict(error: unknown): boolean {
  return error != null && ConnectError.from(error).code === Code.Aborted;
}

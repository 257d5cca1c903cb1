import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionService } from "../../gen/parley/console/v1/session_pb.js";

/** Signs the first administrator up at a product's URL. Returns the transport of the session, for the dashboard's services. */
export async function signUpFirst(baseUrl: string): Promise<Transport> {
  let cookie = "";
  const keepCookie: Interceptor = (next) => async (request) => {
    request.header.set("cookie", cookie);
    const response = await next(request);
    cookie = response.header.getSetCookie()[0]?.split(";")[0] ?? cookie;
    return response;
  };
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [keepCookie] });
  await createClient(SessionService, transport).signUp({ email: "ada@example.com", password: "four unrelated words" });
  return transport;
}

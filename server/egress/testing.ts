/** For tests of the egress proxy. */
import { AddressRules } from "./addresses.ts";

/** Judges loopback as a public address, so that the test's own server can stand for one. */
export class LoopbackIsPublic extends AddressRules {
  override reach(address: string) {
    return address === "127.0.0.1" ? "public" : super.reach(address);
  }

  override endsHere(socket: Parameters<AddressRules["endsHere"]>[0]) {
    return socket.remoteAddress !== "127.0.0.1" && super.endsHere(socket);
  }
}

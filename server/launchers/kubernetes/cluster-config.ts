/**
 * Connections to the cluster's API. Every answer is limited in bytes and time, whichever part of the client library
 * reads the answer. A watch has no end, so each of its lines is limited. Redirects are not followed.
 */
import { KubeConfig, type RequestContext } from "@kubernetes/client-node";
import { AnswerTooLarge } from "#server/http/bounded-answer.ts";

type Dispatcher = NonNullable<ReturnType<RequestContext["getDispatcher"]>>;
type Dispatch = Dispatcher["dispatch"];
type Handler = Parameters<Dispatch>[1];

/** How long requests share connections before new ones are made, by certificates that may have been renewed. */
const SHARE_MS = 5 * 60_000;

export type ClusterLimits = {
  /** A whole answer: lists of all nodes and pods of a large cluster. */
  maxBytes: number;
  /** A whole answer, from the request to its last byte. */
  timeoutMs: number;
  /** A followed log, from beginning to end. */
  maxLogBytes: number;
  /** One change of a watch. The API server stores objects of at most 1.5 MiB. */
  maxChangeBytes: number;
};

const LIMITS: ClusterLimits = {
  maxBytes: 256 * 1024 * 1024,
  timeoutMs: 120_000,
  maxLogBytes: 2 * 1024 * 1024,
  maxChangeBytes: 8 * 1024 * 1024,
};

/** Bounds answers, and has requests share their connections: the library makes a connection for each request. */
export class ClusterConfig extends KubeConfig {
  readonly #limits: ClusterLimits;
  #shared: { dispatcher: Dispatcher | undefined; at: number } | undefined;

  constructor(limits: Partial<ClusterLimits> = {}) {
    super();
    this.#limits = { ...LIMITS, ...limits };
  }

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await super.applySecurityAuthentication(context);
    // Bytes are counted as they arrive, so they must not grow afterwards; and the API server's processor is spared.
    context.setHeaderParam("Accept-Encoding", "identity");
    if (this.#shared === undefined || performance.now() - this.#shared.at > SHARE_MS)
      this.#shared = { dispatcher: context.getDispatcher()?.compose(bounding(this.#limits)), at: performance.now() };
    if (this.#shared.dispatcher !== undefined) context.setDispatcher(this.#shared.dispatcher);
  }

  /** Always with a dispatcher: the global one, of a cluster without own certificates, has no limits. */
  override createDispatcherOptions(
    ...of: Parameters<KubeConfig["createDispatcherOptions"]>
  ): ReturnType<KubeConfig["createDispatcherOptions"]> {
    const options = super.createDispatcherOptions(...of);
    if (options.type !== "none") return options;
    return { type: "agent", connect: { keepAlive: true, keepAliveInitialDelay: 30_000 } };
  }
}

const bounding =
  (limits: ClusterLimits) =>
  (dispatch: Dispatch): Dispatch =>
  (options, handler) => {
    const { searchParams } = new URL(options.path, "http://cluster");
    const isWatch = searchParams.get("watch") === "true";
    const isFollowed = searchParams.get("follow") === "true";
    return dispatch(
      options,
      boundedHandler(handler, {
        maxBytes: isWatch ? limits.maxChangeBytes : isFollowed ? limits.maxLogBytes : limits.maxBytes,
        timeoutMs: isWatch || isFollowed ? undefined : limits.timeoutMs,
        byLine: isWatch,
      }),
    );
  };

function boundedHandler(
  handler: Handler,
  { maxBytes, timeoutMs, byLine }: { maxBytes: number; timeoutMs: number | undefined; byLine: boolean },
): Handler {
  /** Bytes so far, of the answer or of its last line. */
  let received = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    onRequestStart(controller, context) {
      if (timeoutMs !== undefined) {
        const late = new Error(`The cluster's answer was not complete within ${timeoutMs / 1000} s.`);
        timer = setTimeout(() => controller.abort(late), timeoutMs).unref();
      }
      handler.onRequestStart?.(controller, context);
    },
    onResponseStart(controller, status, headers, message) {
      const coding = headers["content-encoding"] ?? "identity";
      if (status >= 300 && status < 400) controller.abort(new Error("The cluster's API answers with a redirect."));
      else if (coding !== "identity") controller.abort(new Error("The cluster's API answers compressed, unasked."));
      else handler.onResponseStart?.(controller, status, headers, message);
    },
    onResponseData(controller, chunk) {
      const firstEnd = byLine ? chunk.indexOf(0x0a) : -1;
      if (received + (firstEnd === -1 ? chunk.length : firstEnd) > maxBytes) {
        controller.abort(new AnswerTooLarge(maxBytes));
        return;
      }
      received = firstEnd === -1 ? received + chunk.length : chunk.length - chunk.lastIndexOf(0x0a) - 1;
      handler.onResponseData?.(controller, chunk);
    },
    onResponseEnd(controller, trailers) {
      clearTimeout(timer);
      handler.onResponseEnd?.(controller, trailers);
    },
    onResponseError(controller, error) {
      clearTimeout(timer);
      handler.onResponseError?.(controller, error);
    },
    onRequestUpgrade(controller) {
      controller.abort(new Error("The cluster's API answers with an upgrade, unasked."));
    },
    onResponseStarted: () => handler.onResponseStarted?.(),
    onBodySent: (chunk) => handler.onBodySent?.(chunk),
    onRequestSent: () => handler.onRequestSent?.(),
  };
}

// Enforces a cluster's NetworkPolicies on one node, by the engine of sigs.k8s.io/kube-network-policies: the first packet
// of each connection is handed to it (NFQUEUE), and goes on or not as the policies say.
//
//	policies KUBECONFIG NODE QUEUE
//
// The engine's own program knows no kubeconfig, and hands packets over by an expression of nftables that kernels may
// lack (CONFIG_NFT_QUEUE). Whoever starts this one hands them over by iptables instead; that the engine's rules are
// refused there, it only logs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 4 {
		return fmt.Errorf("usage: policies KUBECONFIG NODE QUEUE")
	}
	queue, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return fmt.Errorf("QUEUE: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	all := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(
		client,
		all.Networking().V1().NetworkPolicies(),
		all.Core().V1().Namespaces(),
		all.Core().V1().Pods(),
		nil, nil, nil, nil,
		networkpolicy.Config{NodeName: os.Args[2], QueueID: queue},
	)
	if err != nil {
		return err
	}
	all.Start(ctx.Done())
	return controller.Run(ctx)
}

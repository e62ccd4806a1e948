// A storage driver for the tests' node: a bucket is a folder of it, and who mounts one has to show its key. Arguments are
// the driver's name, the kubelet's folder, and the folder of the buckets.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	name, socket, buckets string
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "arguments: name, kubelet's folder, folder of the buckets")
		os.Exit(2)
	}
	name, kubelet, buckets := os.Args[1], os.Args[2], os.Args[3]
	own := &driver{name: name, socket: filepath.Join(kubelet, "plugins", name+".sock"), buckets: buckets}
	failed := make(chan error)
	// The driver first: the kubelet asks it as soon as it is registered.
	go func() { failed <- own.serve(own.socket, func() { fmt.Println("the driver listens") }) }()
	go func() { failed <- own.serve(filepath.Join(kubelet, "plugins_registry", name+".sock"), func() {}) }()
	fmt.Fprintln(os.Stderr, <-failed)
	os.Exit(1)
}

func (own *driver) serve(socket string, listening func()) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, own)
	csi.RegisterNodeServer(server, own)
	registration.RegisterRegistrationServer(server, own)
	listening()
	return server.Serve(listener)
}

// What the kubelet asks of a plugin whose socket it finds.
func (own *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: "CSIPlugin", Name: own.name, Endpoint: own.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (own *driver) NotifyRegistrationStatus(
	_ context.Context, told *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("registered:", told.PluginRegistered, told.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (own *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: own.name, VendorVersion: "1"}, nil
}

func (own *driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (own *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (own *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "node"}, nil
}

func (own *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// Beside each bucket lies its key: `<bucket>.key`.
func (own *driver) NodePublishVolume(
	_ context.Context, asked *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	bucket := filepath.Join(own.buckets, filepath.Base(asked.VolumeContext["bucketName"]))
	key, err := os.ReadFile(bucket + ".key")
	if err != nil {
		return nil, status.Error(codes.NotFound, "there is no such bucket")
	}
	if asked.Secrets["key"] != strings.TrimSpace(string(key)) {
		return nil, status.Error(codes.PermissionDenied, "the key does not open the bucket")
	}
	if err := os.MkdirAll(asked.TargetPath, 0o750); err != nil {
		return nil, err
	}
	if err := syscall.Mount(bucket, asked.TargetPath, "", syscall.MS_BIND, ""); err != nil {
		return nil, err
	}
	if asked.Readonly {
		flags := uintptr(syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY)
		if err := syscall.Mount("", asked.TargetPath, "", flags, ""); err != nil {
			return nil, err
		}
	}
	options := asked.VolumeCapability.GetMount().GetMountFlags()
	fmt.Println("mounted", filepath.Base(bucket), "with", strings.Join(options, ","))
	return &csi.NodePublishVolumeResponse{}, nil
}

func (own *driver) NodeUnpublishVolume(
	_ context.Context, asked *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := syscall.Unmount(asked.TargetPath, 0); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		return nil, err
	}
	// The kubelet may have removed it already.
	if err := os.Remove(asked.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

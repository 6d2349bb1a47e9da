package jail

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	tableName = "insights"
	// Every expression works in one register.
	register = unix.NFT_REG_1
	// loopbackNet is the first byte of the addresses that are the sandbox's own.
	loopbackNet = 127
	hookOutput  = 3    // NF_INET_LOCAL_OUT
	priorityNAT = -100 // NF_IP_PRI_NAT_DST
	// rejectCode is ICMP's port unreachable.
	rejectCode = 3

	batchBegin = unix.NLMSG_MIN_TYPE
	batchEnd   = unix.NLMSG_MIN_TYPE + 1
)

// captureRules installs what captures connections, in one transaction:
//
//	table ip insights {
//		chain nat { type nat hook output priority -100
//			ip daddr != 127.0.0.0/8 meta l4proto tcp redirect to :15001
//			ip daddr != 127.0.0.0/8 udp dport 53 redirect to :53
//		}
//		chain rest { type filter hook output priority 0
//			ip daddr != 127.0.0.0/8 counter reject
//		}
//	}
//
// What the second chain still sees of other addresses is neither of the two: other UDP,
// ICMP, raw packets. Their sender is told at once.
func captureRules() error {
	nl, err := openNetlink(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer nl.close()
	if err := nl.send(captureBatch()); err != nil {
		return err
	}
	return nl.answer()
}

// captureBatch is the transaction. Only its last rule asks for an answer: it comes when all
// is done, and that of a message which failed comes first.
func captureBatch() []byte {
	const create = unix.NLM_F_CREATE
	b := appendMessage(nil, batchBegin, 0, nfMessage(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES))
	b = appendNFT(b, unix.NFT_MSG_NEWTABLE, create, text(unix.NFTA_TABLE_NAME, tableName))
	b = appendNFT(b, unix.NFT_MSG_NEWCHAIN, create, chain("nat", "nat", priorityNAT))
	b = appendNFT(b, unix.NFT_MSG_NEWCHAIN, create, chain("rest", "filter", 0))
	for _, r := range [][]byte{
		rule("nat", elsewhere(), protocol(unix.IPPROTO_TCP), redirect(wire.PortEgress)),
		rule("nat", elsewhere(), protocol(unix.IPPROTO_UDP), destinationPort(wire.PortDNS), redirect(wire.PortDNS)),
	} {
		b = appendNFT(b, unix.NFT_MSG_NEWRULE, create|unix.NLM_F_APPEND, r)
	}
	b = appendNFT(b, unix.NFT_MSG_NEWRULE, create|unix.NLM_F_APPEND|unix.NLM_F_ACK, rule("rest", elsewhere(), counter(), reject()))
	return appendMessage(b, batchEnd, 0, nfMessage(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES))
}

// nfMessage is the header of a message to netfilter.
func nfMessage(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, 0}, resource)
}

func appendNFT(dst []byte, kind, flags uint16, attrs []byte) []byte {
	body := append(nfMessage(unix.AF_INET, 0), attrs...)
	return appendMessage(dst, unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, body)
}

// chain is a chain on the way out of every process here.
func chain(name, kind string, priority int32) []byte {
	hook := append(number(unix.NFTA_HOOK_HOOKNUM, hookOutput), number(unix.NFTA_HOOK_PRIORITY, uint32(priority))...)
	return join(text(unix.NFTA_CHAIN_TABLE, tableName), text(unix.NFTA_CHAIN_NAME, name),
		nested(unix.NFTA_CHAIN_HOOK, hook), text(unix.NFTA_CHAIN_TYPE, kind))
}

func rule(chain string, expressions ...[]byte) []byte {
	return join(text(unix.NFTA_RULE_TABLE, tableName), text(unix.NFTA_RULE_CHAIN, chain),
		nested(unix.NFTA_RULE_EXPRESSIONS, join(expressions...)))
}

// elsewhere matches what is not for 127.0.0.0/8: the first byte of the destination.
func elsewhere() []byte {
	return join(load(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, 1), compare(unix.NFT_CMP_NEQ, []byte{loopbackNet}))
}

func protocol(p byte) []byte {
	meta := join(number(unix.NFTA_META_DREG, register), number(unix.NFTA_META_KEY, unix.NFT_META_L4PROTO))
	return join(expression("meta", meta), compare(unix.NFT_CMP_EQ, []byte{p}))
}

func destinationPort(port uint16) []byte {
	return join(load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2), compare(unix.NFT_CMP_EQ, binary.BigEndian.AppendUint16(nil, port)))
}

func load(base, offset, size uint32) []byte {
	return expression("payload", join(number(unix.NFTA_PAYLOAD_DREG, register), number(unix.NFTA_PAYLOAD_BASE, base),
		number(unix.NFTA_PAYLOAD_OFFSET, offset), number(unix.NFTA_PAYLOAD_LEN, size)))
}

func compare(op uint32, value []byte) []byte {
	return expression("cmp", join(number(unix.NFTA_CMP_SREG, register), number(unix.NFTA_CMP_OP, op),
		nested(unix.NFTA_CMP_DATA, appendAttr(nil, unix.NFTA_DATA_VALUE, value))))
}

func redirect(port uint16) []byte {
	value := appendAttr(nil, unix.NFTA_DATA_VALUE, binary.BigEndian.AppendUint16(nil, port))
	return join(
		expression("immediate", join(number(unix.NFTA_IMMEDIATE_DREG, register), nested(unix.NFTA_IMMEDIATE_DATA, value))),
		expression("redir", number(unix.NFTA_REDIR_REG_PROTO_MIN, register)))
}

func counter() []byte { return expression("counter", nil) }

func reject() []byte {
	return expression("reject", join(number(unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_ICMP_UNREACH),
		appendAttr(nil, unix.NFTA_REJECT_ICMP_CODE, []byte{rejectCode})))
}

func expression(name string, data []byte) []byte {
	return nested(unix.NFTA_LIST_ELEM, join(text(unix.NFTA_EXPR_NAME, name), nested(unix.NFTA_EXPR_DATA, data)))
}

func nested(kind uint16, attrs []byte) []byte {
	return appendAttr(nil, kind|unix.NLA_F_NESTED, attrs)
}

func text(kind uint16, s string) []byte { return appendAttr(nil, kind, append([]byte(s), 0)) }

func number(kind uint16, n uint32) []byte {
	return appendAttr(nil, kind, binary.BigEndian.AppendUint32(nil, n))
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
